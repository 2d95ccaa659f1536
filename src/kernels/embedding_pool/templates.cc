// SPDX-License-Identifier: Apache-2.0
// The one list of templates.
#include <array>

#include "kernels/embedding_pool/cpu_templates.h"

namespace recmill::kernels {
namespace {

constexpr int64_t kStageFirst = 1, kStageAhead = 2;  // Stage of bags-inl.h

const Tunable kFetch{"fetch", "lookups that rows are fetched ahead; 0: not", {0, 16, 32, 64}};
const Tunable kStore{
    "store", "0: plain; 1: the output is fetched ahead; 2: past the caches", {0, 1, 2}};
const Tunable kStage{"stage",
                     "all rows come into the core's cache: 0: by lookups; 1: first, in order; "
                     "2: while the piece before computes",
                     {0, 1, 2}};

int64_t table_bytes(const FeatureShape& shape) {
  return shape.rows * shape.dim * bytes_of(shape.precision);
}

/// Whether the table fits what a schedule may count on: alone, or beside the one before it.
bool stage_fits(const FeatureShape& shape, int64_t stage, const DeviceSpec& device) {
  if (stage == 0) return true;
  return table_bytes(shape) * (stage == kStageAhead ? 2 : 1) <= device.l2_bytes;
}

bool pooled_on_cpu(const FeatureShape& shape, const DeviceSpec& device) {
  return device.kind == DeviceKind::cpu && shape.pooling != Pooling::none;
}

int64_t no_scratch(const FeatureShape&, ParameterValues) {
  return 0;
}

template <size_t kStageAt>
bool wants_rows_fetched(ParameterValues values) {
  return values[kStageAt] == kStageAhead;
}

PoolTemplate bags() {
  PoolTemplate made;
  made.spec = {
      "bags",
      "one bag after the other, each sum in registers",
      Order::contract,
      {kFetch,
       {"held", "vectors of a row held at a time; a wider row is gone through again", {8, 2}},
       kStore,
       kStage},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && (values[1] == 8 || shape.dim > 32) &&
               (values[2] != 2 || shape.dim >= 16) && stage_fits(shape, values[3], device);
      },
      no_scratch};
  made.body = pool_bags;
  made.wants_rows_fetched = wants_rows_fetched<3>;
  return made;
}

PoolTemplate one_each() {
  PoolTemplate made;
  made.spec = {"one_each",
               "bags of exactly one lookup, no offsets to read",
               Order::contract,
               {kFetch, kStore, kStage},
               [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
                 return pooled_on_cpu(shape, device) && shape.bags.one_each() &&
                        (values[1] != 2 || shape.dim >= 16) && stage_fits(shape, values[2], device);
               },
               no_scratch};
  made.body = pool_one_each;
  made.admits = [](const JaggedView& bags) { return bags.one_each; };
  made.wants_rows_fetched = wants_rows_fetched<2>;
  return made;
}

PoolTemplate bags_interleaved() {
  PoolTemplate made;
  made.spec = {"bags_interleaved",
               "bags of neighbouring samples in lock step",
               Order::contract,
               {{"ways", "bags at a time", {2, 4}}, {"fetch", kFetch.meaning, {0, 16}}, kStage},
               [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
                 return pooled_on_cpu(shape, device) && !shape.bags.one_each() && shape.dim <= 32 &&
                        stage_fits(shape, values[2], device);
               },
               no_scratch};
  made.body = pool_bags_interleaved;
  made.wants_rows_fetched = wants_rows_fetched<2>;
  return made;
}

PoolTemplate runs_interleaved() {
  PoolTemplate made;
  made.spec = {"runs_interleaved",
               "runs of one long bag in lock step",
               Order::contract,
               {{"ways", "runs at a time", {2, 4}}, {"fetch", kFetch.meaning, {0, 16}}, kStage},
               [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
                 return pooled_on_cpu(shape, device) &&
                        shape.bags.longest > (values[0] + 1) * kPoolRun && shape.dim <= 32 &&
                        stage_fits(shape, values[2], device);
               },
               no_scratch};
  made.body = pool_runs_interleaved;
  made.wants_rows_fetched = wants_rows_fetched<2>;
  return made;
}

PoolTemplate rows_copied() {
  PoolTemplate made;
  made.spec = {"rows_copied",
               "rows as they are, lookup by lookup",
               Order::contract,
               {{"fetch", kFetch.meaning, {16, 32, 64}}},
               [](const FeatureShape& shape, ParameterValues, const DeviceSpec& device) {
                 return device.kind == DeviceKind::cpu && shape.pooling == Pooling::none;
               },
               no_scratch};
  made.body = copy_rows;
  return made;
}

}  // namespace

std::span<const PoolTemplate> pool_templates() {
  static const std::array all{bags(), one_each(), bags_interleaved(), runs_interleaved(),
                              rows_copied()};
  return all;
}

}  // namespace recmill::kernels
