// SPDX-License-Identifier: Apache-2.0
// The one list of templates.
#include <array>

#include "kernels/embedding_pool/cpu_templates.h"
#include "kernels/embedding_pool/grouped_lookups.h"

namespace recmill::kernels {
namespace {

const Tunable kFetch{
    "fetch", "lookups that rows are fetched ahead; 0: not", {0, 8, 16, 32, 64, 128, 256}};
const Tunable kStore{
    "store", "0: plain; 1: the output is fetched ahead; 2: past the caches", {0, 1, 2}};
const Tunable kStage{
    "stage",
    "all rows are read in order first, into the core's own cache (1) or that of all cores (2); a "
    "batch that asks for fewer cache lines than the table has gets the default schedule",
    {0, 1, 2}};
const Tunable kIds{"ids", "lookups that ids are fetched ahead; 0: not", {0, 512}};

/// A table beyond the first counts as too large for a core's own cache; so many tables share the
/// cache of all cores with what else is under way.
constexpr int64_t kPrivateAtMost = 768 * 1024, kShares = 8;

int64_t table_bytes(const FeatureShape& shape) {
  return shape.rows * shape.dim * bytes_of(shape.precision);
}

/// Bytes of rows in flight: fewer than the least wait for memory, more than the most push each
/// other out of the core's first cache. Rows that are staged come from its second.
constexpr int64_t kLeastInFlight = 512, kMostInFlight = 32 * 1024, kMostOfStaged = 2 * 1024;

bool fetch_fits(const FeatureShape& shape, int64_t fetch, int64_t stage) {
  const int64_t bytes = fetch * shape.dim * bytes_of(shape.precision);
  return fetch == 0 ||
         (bytes >= kLeastInFlight && bytes <= (stage != 0 ? kMostOfStaged : kMostInFlight));
}
/// Whether the table fits what a schedule may count on, and no nearer cache.
bool stage_fits(const FeatureShape& shape, int64_t stage, const DeviceSpec& device) {
  const int64_t bytes = table_bytes(shape);
  if (stage == 1) return bytes <= device.l2_bytes;
  return stage == 0 || (bytes > kPrivateAtMost && bytes <= device.shared_cache_bytes / kShares);
}

bool pooled_on_cpu(const FeatureShape& shape, const DeviceSpec& device) {
  return device.kind == DeviceKind::cpu && shape.pooling != Pooling::none;
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
       kStage,
       kIds},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && fetch_fits(shape, values[0], values[3]) &&
               (values[1] == 8 || shape.dim > 32) && (values[2] != 2 || shape.dim >= 16) &&
               stage_fits(shape, values[3], device);
      },
      nullptr};
  made.body = pool_bags;
  return made;
}

PoolTemplate one_each() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "one_each",
      "bags of exactly one lookup, no offsets to read",
      Order::contract,
      {kFetch, kStore, kStage, kIds},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && shape.bags.one_each() &&
               fetch_fits(shape, values[0], values[2]) && (values[1] != 2 || shape.dim >= 16) &&
               stage_fits(shape, values[2], device);
      },
      nullptr};
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
      {{"ways", "bags at a time", {2, 4}}, {"fetch", kFetch.meaning, {0, 16}}, kStage, kIds},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && !shape.bags.one_each() && shape.dim <= 32 &&
               stage_fits(shape, values[2], device);
      },
      nullptr};
  made.body = pool_bags_interleaved;
  return made;
}

PoolTemplate runs_interleaved() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "runs_interleaved",
      "runs of one long bag in lock step",
      Order::contract,
      {{"ways", "runs at a time", {2, 4}}, {"fetch", kFetch.meaning, {0, 16}}, kStage, kIds},
      [](const FeatureShape& shape, ParameterValues values, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && shape.bags.longest > (values[0] + 1) * kPoolRun &&
               shape.dim <= 32 && stage_fits(shape, values[2], device);
      },
      nullptr};
  made.body = pool_runs_interleaved;
  return made;
}

PoolTemplate ids_grouped() {
  PoolTemplate made;
  static_cast<TemplateSpec&>(made) = {
      "ids_grouped",
      "lookups in the order of their rows, each row read once for those near each other",
      Order::reorders,
      {{"lookups", "put in order together", {2048, 16384}}},
      [](const FeatureShape& shape, ParameterValues, const DeviceSpec& device) {
        return pooled_on_cpu(shape, device) && !shape.bags.one_each();
      },
      [](const FeatureShape&, ParameterValues values) { return grouped_scratch_bytes(values[0]); }};
  made.body = pool_grouped_ids;
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
      nullptr};
  made.body = copy_rows;
  return made;
}

}  // namespace

std::span<const PoolTemplate> pool_templates() {
  static const std::array all{bags(),        one_each(),   bags_interleaved(), runs_interleaved(),
                              ids_grouped(), rows_copied()};
  return all;
}

}  // namespace recmill::kernels
