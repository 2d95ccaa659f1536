// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/gpu_fused_pool.h"

#include <algorithm>

namespace recmill::kernels {

GpuFusedPool::GpuFusedPool(Gpu& gpu, std::vector<GpuKernel> kernels,
                           std::vector<GpuPooledFeature> features)
    : gpu_(gpu), kernels_(std::move(kernels)), features_(std::move(features)) {}

// Of all kernels, one after the other.
std::vector<gpu::PoolBlock> GpuFusedPool::map_blocks(std::span<const JaggedView> bags,
                                                     GpuBags& batch) const {
  std::vector<std::vector<gpu::PoolBlock>> of_kernel(kernels_.size());
  for (size_t f = 0; f < features_.size(); ++f)
    map_gpu_blocks(bags[f], features_[f].parts, static_cast<int32_t>(f),
                   of_kernel[features_[f].kernel]);
  std::vector<gpu::PoolBlock> all;
  batch.launches_.clear();
  for (const auto& blocks : of_kernel) {
    batch.launches_.push_back({std::ssize(all), std::ssize(blocks)});
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  return all;
}

GpuFusedPool::BagArrays GpuFusedPool::add_bags(const JaggedView& bags, StagedArrays& arrays) {
  const int64_t lookups = bags.lookups();
  return {arrays.add<int64_t>(bags.samples + 1), arrays.add<int64_t>(lookups),
          arrays.add<float>(bags.weights == nullptr ? 0 : lookups)};
}

// The first lookup becomes number 0.
gpu::PoolFeature GpuFusedPool::copy_bags(const JaggedView& bags, const BagArrays& to,
                                         const StagedArrays& arrays) {
  const int64_t first = bags.offsets[0];
  const auto offsets = arrays.host(to.offsets);
  for (int64_t i = 0; i <= bags.samples; ++i) offsets[i] = bags.offsets[i] - first;
  std::copy_n(bags.rows + first, to.lookups.count, arrays.host(to.lookups).begin());
  gpu::PoolFeature feature = {};
  feature.offsets = arrays.device(to.offsets);
  feature.lookups = arrays.device(to.lookups);
  feature.samples = bags.samples;
  if (bags.weights != nullptr) {
    std::copy_n(bags.weights + first, to.weights.count, arrays.host(to.weights).begin());
    feature.weights = arrays.device(to.weights);
  }
  return feature;
}

Status GpuFusedPool::stage(std::span<const JaggedView> bags, GpuBags& batch) const {
  RECMILL_CHECK(bags.size() == features_.size());
  const auto blocks = map_blocks(bags, batch);
  StagedArrays& arrays = batch.arrays_;
  arrays.clear();
  batch.features_ = arrays.add<gpu::PoolFeature>(std::ssize(features_));
  batch.outputs_ = arrays.add<gpu::PoolOutput>(std::ssize(features_));
  batch.blocks_ = arrays.add<gpu::PoolBlock>(std::ssize(blocks));
  std::vector<BagArrays> of_bags;
  std::vector<int64_t> run_sums, arrivals;  // of features with several blocks for a bag
  int64_t floats = 0, samples = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    of_bags.push_back(add_bags(bags[f], arrays));
    run_sums.push_back(floats);
    arrivals.push_back(samples);
    if (features_[f].parts.piece == 0) continue;
    floats += (bags[f].lookups() / gpu::kRun + bags[f].samples) * features_[f].dim;
    samples += bags[f].samples;
  }
  const std::string what = "bags of a batch";
  RECMILL_RETURN_IF_ERROR(arrays.allocate(gpu_, what));
  RECMILL_RETURN_IF_ERROR(reserve(batch.run_sums_, floats * sizeof(float), gpu_, what));
  RECMILL_RETURN_IF_ERROR(reserve(batch.arrivals_, samples * sizeof(u32), gpu_, what));
  const auto to = arrays.host(batch.features_);
  for (size_t f = 0; f < features_.size(); ++f) {
    to[f] = copy_bags(bags[f], of_bags[f], arrays);
    to[f].rows = features_[f].rows;
    to[f].schedule = features_[f].schedule;
    to[f].run_sums = batch.run_sums_.address<float>() + run_sums[f];
    to[f].arrivals = batch.arrivals_.address<u32>() + arrivals[f];
  }
  std::ranges::copy(blocks, arrays.host(batch.blocks_).begin());
  return {};
}

Status GpuFusedPool::send(GpuBags& batch, GpuStream& stream) const {
  RECMILL_RETURN_IF_ERROR(batch.arrays_.send(stream));
  return batch.arrivals_.size() == 0 ? Status() : stream.zero(batch.arrivals_);
}

Status GpuFusedPool::run(GpuBags& batch, std::span<const gpu::PoolOutput> outputs,
                         GpuStream& stream) const {
  RECMILL_CHECK(outputs.size() == features_.size());
  StagedArrays& arrays = batch.arrays_;
  std::ranges::copy(outputs, arrays.host(batch.outputs_).begin());
  RECMILL_RETURN_IF_ERROR(arrays.send(batch.outputs_, stream));
  gpu::PoolArguments arguments = {};
  arguments.features = arrays.device(batch.features_);
  arguments.outputs = arrays.device(batch.outputs_);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const auto [first, blocks] = batch.launches_[k];
    if (blocks == 0) continue;
    arguments.blocks = arrays.device(batch.blocks_) + first;
    const Grid grid{{static_cast<unsigned>(blocks)}, {gpu::kBlockThreads}};
    RECMILL_RETURN_IF_ERROR(gpu_.launch(kernels_[k], grid, arguments, stream));
  }
  return {};
}

}  // namespace recmill::kernels
