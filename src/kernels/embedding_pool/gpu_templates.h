// SPDX-License-Identifier: Apache-2.0
// The schedules of embedding_pool on GPUs (RecFlex, section V): what each says of itself. Their
// bodies are device code (cuda_bags.cuh, cuda_reordered_bags.cuh), compiled for the features that
// use them (kernels/codegen/gpu/gpu_pool_source.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/embedding_pool/gpu_blocks.h"
#include "kernels/row_storage.h"
#include "kernels/schedule/schedule.h"

namespace recmill::kernels {

struct GpuPoolTemplate : TemplateSpec {
  /// Of the device code: the struct, whose parameters behind the shape are the tunables in order.
  std::string type;
  GpuParts (*parts)(ParameterValues values) = nullptr;
  int (*lanes)(ParameterValues values) = nullptr;  // weights that a thread fetches at once
  /// Whether it is right for these bags, which can be others than those that it was chosen by;
  /// null: for all.
  bool (*admits)(const JaggedView& bags) = nullptr;
};

/// One list. In deterministic mode a template that reorders sums is no candidate, and one that
/// keeps their order takes its place: `deterministic` says which.
std::span<const GpuPoolTemplate> gpu_pool_templates();

/// Every schedule worth trying for a feature: RecFlex's default set (its artifact, schedule
/// templates), and several blocks for a bag where bags are long enough.
std::vector<Schedule> gpu_pool_candidates(const FeatureShape& shape, bool deterministic);

/// What features have that nobody tuned; right for every bag. `rows`: their layout.
Schedule default_gpu_pool_schedule(Pooling pooling, const RowStorage& rows);

/// The template of the schedule, and its parameters' values. Fails, naming it.
struct GpuPoolKernel {
  const GpuPoolTemplate* of = nullptr;
  std::vector<int64_t> values;
};
Result<GpuPoolKernel> find_gpu_pool_kernel(const Schedule& schedule);

}  // namespace recmill::kernels
