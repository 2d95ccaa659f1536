// SPDX-License-Identifier: Apache-2.0
// The one list of templates.
#include <array>

#include "kernels/embedding_pool/cpu_templates.h"

namespace recmill::kernels {
namespace {

const Tunable kFetch{
    "fetch", "lookups that rows are fetched ahead; 0: not", {0, 8, 16, 32, 64, 128, 256}};
const Tunable kStore{
    "store", "0: plain; 1: the output is fetched ahead; 2: past the caches", {0, 1, 2}};
const Tunable kStage{
    "stage", "1: all rows are read in order first, into the core's cache; 0: not", {0, 1}};

int64_t table_bytes(const FeatureShape& shape) {
  return shape.rows * shape.dim * bytes_of(shape.precision);
}

/// Rows in flight of which a core keeps some: more would push each other out of its first cache.
constexpr int64_t kBytesInFlight = 32 * 1024;

bool fetch_fits(const FeatureShape& shape, int64_t fetch) {
  return fetch == 0 || fetch * shape.dim * bytes_of(shape.precision) <= kBytesInFlight;
}
/// Whether the table fits what a schedule may count on.
bool stage_fits(const FeatureShape& shape, int64_t stage, const DeviceSpec& device) {
  return stage == 0 || table_bytes(shape) <= device.l2_bytes;
}

bool pooled_on_cpu(const FeatureShape& shape, const DeviceSpec& device) {
  return device.kind == DeviceKind::cpu && shape.pooling != Pooling::none;
}

int64_t no_scratch(const FeatureShape&, ParameterValues) {
  return 0;
}

PoolTemplate bags() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "bags",
      "one bag after the other, each sum in registers",
      Order::contract,
      {kFetch,
       {"held", "vectors of a row held at a time; a wider row is gone through again", {8, 2}},
       kStore,
       kStage},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && fetch_fits(shape, values[0]) &&
               (values[1] == 8 || shape.dim > 32) && (values[2] != 2 || shape.dim >= 16) &&
               stage_fits(shape, values[3], device);
      },
      no_scratch};
  made.body = pool_bags;
  return made;
}

PoolTemplate one_each() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "one_each",
      "bags of exactly one lookup, no offsets to read",
      Order::contract,
      {kFetch, kStore, kStage},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && shape.bags.one_each() &&
               fetch_fits(shape, values[0]) && (values[1] != 2 || shape.dim >= 16) &&
               stage_fits(shape, values[2], device);
      },
      no_scratch};
  made.body = pool_one_each;
  made.admits = [](const JaggedView& bags) { return bags.one_each; };
  return made;
}

PoolTemplate bags_interleaved() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "bags_interleaved",
      "bags of neighbouring samples in lock step",
      Order::contract,
      {{"ways", "bags at a time", {2, 4}}, {"fetch", kFetch.meaning, {0, 16}}, kStage},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && !shape.bags.one_each() && shape.dim <= 32 &&
               stage_fits(shape, values[2], device);
      },
      no_scratch};
  made.body = pool_bags_interleaved;
  return made;
}

PoolTemplate runs_interleaved() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "runs_interleaved",
      "runs of one long bag in lock step",
      Order::contract,
      {{"ways", "runs at a time", {2, 4}}, {"fetch", kFetch.meaning, {0, 16}}, kStage},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && shape.bags.longest > (values[0] + 1) * kPoolRun &&
               shape.dim <= 32 && stage_fits(shape, values[2], device);
      },
      no_scratch};
  made.body = pool_runs_interleaved;
  return made;
}

PoolTemplate rows_copied() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "rows_copied",
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
