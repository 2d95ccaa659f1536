// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/gpu_templates.h"

#include <algorithm>
#include <array>

#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/embedding_pool/gpu_pool_arguments.h"

namespace recmill::kernels {
namespace {

constexpr int64_t kThreads = gpu::kBlockThreads;
constexpr int64_t kLongBag = 2048;  // lookups from which several blocks for one may pay
constexpr int64_t kNarrow = 32;     // elements of a row that reduce_by_key is for, at most

const Tunable kLanes{"lanes", "neighbouring elements of a thread", {1, 2, 4}};
const Tunable kAtOnce{"at_once", "rows on their way at a time", {1, 2, 4, 8}};

// Numbers that may divide a dimension.
std::vector<int64_t> up_to(int64_t most) {
  std::vector<int64_t> all;
  for (int64_t n = 1; n <= most; ++n) all.push_back(n);
  return all;
}

bool pooled_bags(const FeatureShape& shape) {
  return shape.pooling != Pooling::none && !shape.bags.one_each();
}

bool has_one_each(const JaggedView& bags) {
  if (bags.one_each) return true;
  for (int64_t i = 0; i < bags.samples; ++i)
    if (bags.offsets[i + 1] - bags.offsets[i] != 1) return false;
  return true;
}

GpuPoolTemplate one_each() {
  return {{"one_each",
           "bags of exactly one lookup: rows copied, 256 samples a block",
           Order::contract,
           {{"unroll", "elements of a thread", up_to(1024)}},
           [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
             return shape.pooling != Pooling::none && shape.bags.one_each() &&
                    shape.dim % values[0] == 0 && values[0] <= std::max<int64_t>(shape.dim, 1);
           },
           nullptr},
          "OneEach",
          [](ParameterValues) { return GpuParts{.samples = kThreads}; },
          [](ParameterValues) { return 1; },
          has_one_each};
}

GpuPoolTemplate rows_copied() {
  return {{"rows_copied",
           "rows as they are, 256 lookups a block",
           Order::contract,
           {kLanes, kAtOnce, {"threads", "of a lookup", {4, 8, 16, 32, 64, 128}}},
           [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
             return shape.pooling == Pooling::none && shape.dim % values[0] == 0 &&
                    (values[0] * values[2] < 2 * shape.dim || values[0] * values[2] == 4);
           },
           nullptr},
          "RowsCopied",
          [](ParameterValues) { return GpuParts{.lookups = kThreads}; },
          [](ParameterValues values) { return static_cast<int>(values[0]); }};
}

GpuPoolTemplate threads_per_sample() {
  return {{"threads_per_sample",
           "part of a warp, a warp or some for each sample",
           Order::contract,
           {kLanes, kAtOnce, {"threads", "of a sample", {4, 8, 16, 32, 64, 128}}},
           [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
             return pooled_bags(shape) && shape.dim % values[0] == 0 &&
                    values[0] * values[2] < 2 * shape.dim;
           },
           nullptr},
          "ThreadsPerSample",
          [](ParameterValues values) { return GpuParts{.samples = kThreads / values[2]}; },
          [](ParameterValues values) { return static_cast<int>(values[0]); }};
}

const Tunable kSampleThreads{"threads", "side by side of a sample", {1, 2, 4, 8, 16, 32, 64}};
const Tunable kSamples{"samples", "of a block at a time", {4, 8, 16, 32, 64, 128}};

bool fits_block(const FeatureShape& shape, ParameterValues values) {
  const int64_t width = values[0] * values[2];
  return pooled_bags(shape) && shape.dim % values[0] == 0 && values[2] * values[3] <= kThreads &&
         2 * width >= shape.dim && width < 2 * shape.dim;
}

GpuPoolTemplate samples_per_block() {
  return {{"samples_per_block",
           "several samples a block; threads that are left take runs of their bags",
           Order::contract,
           {kLanes, kAtOnce, kSampleThreads, kSamples},
           [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
             return fits_block(shape, values);
           },
           nullptr},
          "SamplesPerBlock",
          [](ParameterValues values) { return GpuParts{.samples = values[3]}; },
          [](ParameterValues values) { return static_cast<int>(values[0]); }};
}

GpuPoolTemplate split_samples_per_block() {
  return {{"split_samples_per_block",
           "several samples a block; threads that are left take lookups of their bags in turn",
           Order::reorders,
           {kLanes, kAtOnce, kSampleThreads, kSamples},
           [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
             return fits_block(shape, values) && values[2] * values[3] < kThreads;
           },
           nullptr},
          "SplitSamplesPerBlock",
          [](ParameterValues values) { return GpuParts{.samples = values[3]}; },
          [](ParameterValues values) { return static_cast<int>(values[0]); }};
}

GpuPoolTemplate reduce_by_key() {
  return {{"reduce_by_key",
           "lookups dealt out to threads whatever their bags, added by a segmented scan",
           Order::reorders,
           {{"items", "lookups of a thread", {1, 2, 4, 8}},
            {"columns", "elements at a time", up_to(kNarrow)}},
           [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
             return pooled_bags(shape) && shape.dim <= kNarrow && shape.dim % values[1] == 0;
           },
           nullptr},
          "ReduceByKey",
          [](ParameterValues) { return GpuParts{.samples = kThreads}; },
          [](ParameterValues) { return 1; }};
}

GpuPoolTemplate blocks_per_sample() {
  return {{"blocks_per_sample",
           "several blocks for a long bag",
           Order::contract,
           {kLanes, kAtOnce, {"threads", "of a run", {8, 16, 32}}},
           [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
             return pooled_bags(shape) && shape.bags.longest >= kLongBag &&
                    shape.dim % values[0] == 0 && values[0] * values[2] < 2 * shape.dim;
           },
           nullptr},
          "BlocksPerSample",
          [](ParameterValues values) { return GpuParts{.piece = kThreads / values[2] * kPoolRun}; },
          [](ParameterValues values) { return static_cast<int>(values[0]); }};
}

// Whether the schedule is one to try in this mode: threads that are left over in a block take runs
// where the order of sums must be kept, and lookups where it need not.
bool is_candidate(const GpuPoolTemplate& of, ParameterValues values, bool deterministic) {
  if (deterministic) return of.order == Order::contract;
  return of.name != "samples_per_block" || values[2] * values[3] == kThreads;
}

}  // namespace

std::span<const GpuPoolTemplate> gpu_pool_templates() {
  static const std::array all{one_each(),
                              rows_copied(),
                              threads_per_sample(),
                              samples_per_block(),
                              split_samples_per_block(),
                              reduce_by_key(),
                              blocks_per_sample()};
  return all;
}

std::vector<Schedule> gpu_pool_candidates(const FeatureShape& shape, bool deterministic) {
  DeviceSpec device;
  device.kind = DeviceKind::cuda;
  std::vector<Schedule> found;
  for (const GpuPoolTemplate& of : gpu_pool_templates()) {
    for (Schedule& schedule : candidates(of, shape, device)) {
      const auto values = values_of(schedule, of);
      if (is_candidate(of, *values, deterministic)) found.push_back(std::move(schedule));
    }
  }
  return found;
}

Schedule default_gpu_pool_schedule(Pooling pooling, const RowStorage& rows) {
  int64_t lanes = 4;  // as many as every row has whole, and in a place that allows it
  while (rows.dim % lanes != 0 || rows.stride % (lanes * bytes_of(rows.precision)) != 0) lanes /= 2;
  int64_t threads = 4;
  while (threads * lanes < rows.dim && threads < 32) threads *= 2;
  if (pooling == Pooling::none)
    return {"rows_copied", {{"lanes", lanes}, {"at_once", 4}, {"threads", threads}}};
  return {"threads_per_sample", {{"lanes", lanes}, {"at_once", 4}, {"threads", threads}}};
}

Result<GpuPoolKernel> find_gpu_pool_kernel(const Schedule& schedule) {
  for (const GpuPoolTemplate& of : gpu_pool_templates()) {
    if (of.name != schedule.of) continue;
    RECMILL_ASSIGN_OR_RETURN(auto values, values_of(schedule, of));
    return GpuPoolKernel{&of, std::move(values)};
  }
  return Status::BadRequest("schedule '" + schedule.name() + "' has no template for GPUs");
}

}  // namespace recmill::kernels
