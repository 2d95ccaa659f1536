// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/gpu_fused_pool.h"

#include <algorithm>

namespace recmill::kernels {
namespace {

const GpuPoolPlace& place_for(const GpuPooledFeature& feature, const JaggedView& bags) {
  const auto admits = feature.chosen.admits;
  return admits == nullptr || admits(bags) ? feature.chosen : feature.otherwise;
}

/// Of a feature whose schedule has several blocks for a bag.
int64_t run_sums_of(int64_t lookups, int64_t samples, int64_t dim) {
  return (lookups / gpu::kRun + samples) * dim;
}

int64_t most_blocks(const GpuBagsSize& of, int64_t samples) {
  const auto cut = [](int64_t all, int64_t of_part) { return (all + of_part - 1) / of_part; };
  const GpuParts& parts = of.parts;
  if (parts.piece > 0) return samples + of.lookups / parts.piece;
  return parts.samples > 0 ? cut(samples, parts.samples) : cut(of.lookups, parts.lookups);
}

}  // namespace

GpuBytes GpuBags::need(std::span<const GpuBagsSize> features, int64_t samples) {
  StagedArrays arrays, run_arrays;
  int64_t blocks = 0, run_sums = 0, arrivals = 0;
  for (const GpuBagsSize& of : features) {
    arrays.add<int64_t>(samples + 1);
    arrays.add<int64_t>(of.lookups);
    arrays.add<float>(of.weighted ? of.lookups : 0);
    blocks += most_blocks(of, samples);
    if (of.parts.piece == 0) continue;
    run_sums += run_sums_of(of.lookups, samples, of.dim);
    arrivals += samples;
  }
  arrays.add<gpu::PoolFeature>(std::ssize(features));
  arrays.add<gpu::PoolBlock>(blocks);
  run_arrays.add<gpu::PoolOutput>(std::ssize(features));
  GpuBytes all = arrays.need();
  all += run_arrays.need();
  all.device += reserved_bytes(run_sums * sizeof(float)) + reserved_bytes(arrivals * sizeof(u32));
  return all;
}

GpuFusedPool::GpuFusedPool(Gpu& gpu, std::vector<GpuPoolLaunched> kernels,
                           std::vector<GpuPooledFeature> features)
    : gpu_(gpu), kernels_(std::move(kernels)), features_(std::move(features)) {}

// Of all kernels, one after the other.
GpuFusedPool::Mapped GpuFusedPool::map_blocks(std::span<const JaggedView> bags,
                                              std::span<const GpuPoolPlace* const> places,
                                              const ArrangeGpuBlocks& arrange,
                                              GpuBags& batch) const {
  std::vector<std::vector<gpu::PoolBlock>> of_kernel(kernels_.size());
  for (size_t f = 0; f < features_.size(); ++f)
    map_gpu_blocks(bags[features_[f].bags], places[f]->parts, static_cast<int32_t>(f),
                   of_kernel[places[f]->kernel]);
  Mapped all;
  batch.launches_.clear();
  for (auto& blocks : of_kernel) {
    std::vector<int64_t> begins;
    if (arrange) begins = arrange(blocks);
    const int64_t of_grid = begins.empty() ? std::ssize(blocks) : std::ssize(begins) - 1;
    batch.launches_.push_back({std::ssize(all.blocks), of_grid, std::ssize(all.begins)});
    all.blocks.insert(all.blocks.end(), blocks.begin(), blocks.end());
    all.begins.insert(all.begins.end(), begins.begin(), begins.end());
  }
  return all;
}

GpuFusedPool::BagArrays GpuFusedPool::add_bags(const JaggedView& bags, StagedArrays& arrays) {
  const int64_t lookups = bags.lookups();
  return {arrays.add<int64_t>(bags.samples + 1), arrays.add<int64_t>(lookups),
          arrays.add<float>(bags.weights == nullptr ? 0 : lookups)};
}

// The first lookup becomes number 0.
void GpuFusedPool::copy_bags(const JaggedView& bags, const BagArrays& to,
                             const StagedArrays& arrays) {
  const int64_t first = bags.offsets[0];
  const auto offsets = arrays.host(to.offsets);
  for (int64_t i = 0; i <= bags.samples; ++i) offsets[i] = bags.offsets[i] - first;
  std::copy_n(bags.rows + first, to.lookups.count, arrays.host(to.lookups).begin());
  if (bags.weights != nullptr)
    std::copy_n(bags.weights + first, to.weights.count, arrays.host(to.weights).begin());
}

gpu::PoolFeature GpuFusedPool::arguments(size_t feature, const JaggedView& bags,
                                         const BagArrays& staged,
                                         const StagedArrays& arrays) const {
  gpu::PoolFeature of = {};
  of.offsets = arrays.device(staged.offsets);
  of.lookups = arrays.device(staged.lookups);
  of.weights = bags.weights == nullptr ? nullptr : arrays.device(staged.weights);
  of.rows = features_[feature].rows;
  of.samples = bags.samples;
  return of;
}

Status GpuFusedPool::stage(std::span<const JaggedView> bags, GpuBags& batch,
                           const ArrangeGpuBlocks& arrange) const {
  std::vector<const GpuPoolPlace*> places;
  for (const GpuPooledFeature& feature : features_)
    places.push_back(&place_for(feature, bags[feature.bags]));
  batch.kernels_.clear();
  batch.rows_.clear();
  for (size_t f = 0; f < features_.size(); ++f) {
    const JaggedView& of = bags[features_[f].bags];
    batch.kernels_.push_back(places[f]->kernel);
    batch.rows_.push_back(places[f]->parts.lookups > 0 ? of.lookups() : of.samples);
  }
  const Mapped mapped = map_blocks(bags, places, arrange, batch);
  StagedArrays& arrays = batch.arrays_;
  arrays.clear();
  batch.features_ = arrays.add<gpu::PoolFeature>(std::ssize(features_));
  batch.blocks_ = arrays.add<gpu::PoolBlock>(std::ssize(mapped.blocks));
  batch.begins_ = arrays.add<int64_t>(std::ssize(mapped.begins));
  std::vector<BagArrays> staged;
  for (const JaggedView& of : bags) staged.push_back(add_bags(of, arrays));
  std::vector<int64_t> run_sums, arrivals;  // of features with several blocks for a bag
  int64_t floats = 0, samples = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    run_sums.push_back(floats);
    arrivals.push_back(samples);
    if (places[f]->parts.piece == 0) continue;
    const JaggedView& of = bags[features_[f].bags];
    floats += run_sums_of(of.lookups(), of.samples, features_[f].dim);
    samples += of.samples;
  }
  batch.run_arrays_.clear();
  batch.outputs_ = batch.run_arrays_.add<gpu::PoolOutput>(std::ssize(features_));
  const std::string what = "bags of a batch";
  RECMILL_RETURN_IF_ERROR(arrays.allocate(gpu_, what));
  RECMILL_RETURN_IF_ERROR(batch.run_arrays_.allocate(gpu_, what));
  RECMILL_RETURN_IF_ERROR(reserve(batch.run_sums_, floats * sizeof(float), gpu_, what));
  RECMILL_RETURN_IF_ERROR(reserve(batch.arrivals_, samples * sizeof(u32), gpu_, what));
  for (size_t b = 0; b < bags.size(); ++b) copy_bags(bags[b], staged[b], arrays);
  const auto to = arrays.host(batch.features_);
  for (size_t f = 0; f < features_.size(); ++f) {
    const size_t b = features_[f].bags;
    to[f] = arguments(f, bags[b], staged[b], arrays);
    to[f].schedule = places[f]->schedule;
    to[f].run_sums = batch.run_sums_.address<float>() + run_sums[f];
    to[f].arrivals = batch.arrivals_.address<u32>() + arrivals[f];
  }
  std::ranges::copy(mapped.blocks, arrays.host(batch.blocks_).begin());
  std::ranges::copy(mapped.begins, arrays.host(batch.begins_).begin());
  return {};
}

std::span<const gpu::PoolBlock> GpuFusedPool::blocks(const GpuBags& batch) {
  return batch.arrays_.host(batch.blocks_);
}

Status GpuFusedPool::send(GpuBags& batch, GpuStream& stream) const {
  RECMILL_RETURN_IF_ERROR(batch.arrays_.send(stream));
  return batch.arrivals_.size() == 0 ? Status() : stream.zero(batch.arrivals_);
}

Status GpuFusedPool::run(GpuBags& batch, std::span<const gpu::PoolOutput> outputs,
                         GpuStream& stream, int64_t* clocks) const {
  RECMILL_CHECK(outputs.size() == features_.size());
  const StagedArrays& arrays = batch.arrays_;
  std::ranges::copy(outputs, batch.run_arrays_.host(batch.outputs_).begin());
  RECMILL_RETURN_IF_ERROR(batch.run_arrays_.send(stream));
  gpu::PoolArguments arguments = {};
  arguments.features = arrays.device(batch.features_);
  arguments.outputs = batch.run_arrays_.device(batch.outputs_);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const GpuBags::Launch& of = batch.launches_[k];
    if (of.blocks == 0) continue;
    arguments.blocks = arrays.device(batch.blocks_) + of.first_block;
    arguments.begins = arrays.device(batch.begins_) + of.first_begin;
    arguments.clocks = clocks == nullptr ? nullptr : clocks + of.first_block;
    const Grid grid{{static_cast<unsigned>(of.blocks)},
                    {gpu::kBlockThreads},
                    static_cast<unsigned long>(kernels_[k].dynamic_shared)};
    RECMILL_RETURN_IF_ERROR(gpu_.launch(kernels_[k].kernel, grid, arguments, stream));
  }
  for (size_t f = 0; f < features_.size(); ++f)
    RECMILL_RETURN_IF_ERROR(gpu_.check_nan(kernels_[batch.kernels_[f]].kernel, outputs[f].data,
                                           batch.rows_[f], features_[f].dim, outputs[f].stride,
                                           "feature number " + std::to_string(f), stream));
  return {};
}

}  // namespace recmill::kernels
