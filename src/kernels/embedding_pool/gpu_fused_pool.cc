// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/gpu_fused_pool.h"

#include <algorithm>
#include <numeric>

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

constexpr int64_t kStretch = 8192;  // lookups, or offsets, that one thread copies at a time

/// Part `number` of `parts` of a feature's bags, or of any of their arrays.
struct Stretch {
  size_t bags = 0;
  int64_t number = 0, parts = 1;

  int64_t begin(int64_t count) const { return count * number / parts; }
  int64_t end(int64_t count) const { return count * (number + 1) / parts; }
};

bool are_there(std::span<const BagsOnGpu> on_gpu, size_t bags) {
  return !on_gpu.empty() && on_gpu[bags].are_there;
}

std::vector<Stretch> stretches_of(std::span<const JaggedView> bags,
                                  std::span<const BagsOnGpu> on_gpu) {
  std::vector<Stretch> all;
  for (size_t b = 0; b < bags.size(); ++b) {
    if (are_there(on_gpu, b)) continue;
    const int64_t longest = std::max(bags[b].lookups(), bags[b].samples + 1);
    const int64_t parts = (longest + kStretch - 1) / kStretch;
    for (int64_t number = 0; number < parts; ++number) all.push_back({b, number, parts});
  }
  return all;
}

/// A feature's arrays in pinned memory.
struct PinnedBags {
  std::span<int64_t> offsets, lookups;
  std::span<float> weights;
};

// The first lookup becomes number 0. Offsets of bags of exactly one lookup are not its own. Gives
// how many of the lookups are far, where `near` says so and rows become slots.
int64_t copy_stretch(const JaggedView& bags, const Stretch& of, const NearRows* near,
                     const PinnedBags& to) {
  const int64_t first = bags.offsets[0];
  if (!bags.one_each)
    for (int64_t i = of.begin(bags.samples + 1); i < of.end(bags.samples + 1); ++i)
      to.offsets[i] = bags.offsets[i] - first;
  const int64_t begin = of.begin(bags.lookups()), end = of.end(bags.lookups());
  int64_t far = 0;
  if (near == nullptr) {
    std::copy(bags.rows + first + begin, bags.rows + first + end, to.lookups.begin() + begin);
  } else {
    for (int64_t i = begin; i < end; ++i) {
      to.lookups[i] = near->slot(bags.rows[first + i]);
      far += to.lookups[i] >= near->near() ? 1 : 0;
    }
  }
  if (bags.weights != nullptr)
    std::copy(bags.weights + first + begin, bags.weights + first + end, to.weights.begin() + begin);
  return far;
}

}  // namespace

GpuBytes GpuBags::need(std::span<const GpuBagsSize> features, int64_t samples) {
  StagedArrays arrays, run_arrays;
  int64_t blocks = 0, run_sums = 0, arrivals = 0;
  bool has_one_each = false;
  for (const GpuBagsSize& of : features) {
    const bool own_offsets = !of.one_each && !of.made_there;
    if (own_offsets || (of.one_each && !std::exchange(has_one_each, true)))
      arrays.add<int64_t>(samples + 1);
    arrays.add<int64_t>(of.made_there ? 0 : of.lookups);
    arrays.add<float>(of.weighted && !of.made_there ? of.lookups : 0);
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
  const auto weight_of_block = [&](const gpu::PoolBlock& block) {
    const GpuPooledFeature& of = features_[block.feature];
    return weight_of(block, bags[of.bags], places[block.feature]->parts, of.dim);
  };
  Mapped all;
  batch.launches_.clear();
  for (auto& blocks : of_kernel) {
    std::vector<int64_t> begins;
    if (arrange) {
      begins = arrange(blocks);
    } else {
      put_heaviest_first(weight_of_block, blocks);
    }
    const int64_t of_grid = begins.empty() ? std::ssize(blocks) : std::ssize(begins) - 1;
    batch.launches_.push_back({std::ssize(all.blocks), of_grid, std::ssize(all.begins)});
    all.blocks.insert(all.blocks.end(), blocks.begin(), blocks.end());
    all.begins.insert(all.begins.end(), begins.begin(), begins.end());
  }
  return all;
}

// Where each bag has exactly one lookup, offsets are the same: they are there once.
void GpuFusedPool::add_bags(std::span<const JaggedView> bags, std::span<const BagsOnGpu> on_gpu,
                            GpuBags& batch) {
  StagedArrays& arrays = batch.arrays_;
  int64_t one_each = 0;
  for (const JaggedView& of : bags)
    if (of.one_each) one_each = std::max(one_each, of.samples + 1);
  batch.one_each_ = arrays.add<int64_t>(one_each);
  batch.bags_.clear();
  for (size_t b = 0; b < bags.size(); ++b) {
    const JaggedView& of = bags[b];
    const bool is_there = are_there(on_gpu, b);
    const int64_t lookups = is_there ? 0 : of.lookups();
    batch.bags_.push_back(
        {of.one_each ? batch.one_each_ : arrays.add<int64_t>(is_there ? 0 : of.samples + 1),
         arrays.add<int64_t>(lookups), arrays.add<float>(of.weights == nullptr ? 0 : lookups)});
  }
}

// [bags] Of the tables that they look up.
std::vector<const NearRows*> GpuFusedPool::near_rows(size_t bags) const {
  std::vector<const NearRows*> near(bags);
  for (const GpuPooledFeature& feature : features_) near[feature.bags] = feature.near;
  return near;
}

void GpuFusedPool::copy_bags(std::span<const JaggedView> bags, std::span<const BagsOnGpu> on_gpu,
                             ThreadPool& pool, GpuBags& batch) const {
  const StagedArrays& arrays = batch.arrays_;
  const auto stretches = stretches_of(bags, on_gpu);
  const auto near = near_rows(bags.size());
  std::vector<int64_t> far(stretches.size());
  pool.run(std::ssize(stretches), [&](int64_t i) {
    const Stretch& of = stretches[i];
    const GpuBags::BagArrays& to = batch.bags_[of.bags];
    far[i] =
        copy_stretch(bags[of.bags], of, near[of.bags],
                     {arrays.host(to.offsets), arrays.host(to.lookups), arrays.host(to.weights)});
  });
  batch.far_lookups_ = std::reduce(far.begin(), far.end());
  const auto one_each = arrays.host(batch.one_each_);
  pool.run_ranges(batch.one_each_.count, kStretch, [&](int64_t begin, int64_t end) {
    std::iota(one_each.begin() + begin, one_each.begin() + end, begin);
  });
}

gpu::PoolFeature GpuFusedPool::arguments(size_t feature, const JaggedView& bags,
                                         std::span<const BagsOnGpu> on_gpu,
                                         const GpuBags& batch) const {
  const StagedArrays& arrays = batch.arrays_;
  const size_t number = features_[feature].bags;
  const GpuBags::BagArrays& staged = batch.bags_[number];
  gpu::PoolFeature of = {};
  of.offsets = arrays.device(staged.offsets);
  of.lookups = arrays.device(staged.lookups);
  of.weights = bags.weights == nullptr ? nullptr : arrays.device(staged.weights);
  of.rows = features_[feature].rows;
  of.samples = bags.samples;
  of.far = features_[feature].far;
  of.near = features_[feature].near == nullptr ? 0 : features_[feature].near->near();
  if (!are_there(on_gpu, number)) return of;
  if (!bags.one_each) of.offsets = on_gpu[number].offsets;
  of.lookups = on_gpu[number].rows;
  of.weights = on_gpu[number].weights;
  return of;
}

std::string GpuFusedPool::name_of(size_t feature) const {
  const std::string& name = features_[feature].name;
  return name.empty() ? "feature number " + std::to_string(feature) : "feature '" + name + "'";
}

// Weights are of a kernel's text: it reads those that are not there, or leaves out those that are.
Status GpuFusedPool::check_weights(std::span<const JaggedView> bags,
                                   std::span<const BagsOnGpu> on_gpu) const {
  for (size_t f = 0; f < features_.size(); ++f) {
    const JaggedView& of = bags[features_[f].bags];
    const float* const weights =
        are_there(on_gpu, features_[f].bags) ? on_gpu[features_[f].bags].weights : of.weights;
    if (of.lookups() == 0 || (weights != nullptr) == features_[f].weighted) continue;
    return Status::Failed(name_of(f) + " has " +
                          (features_[f].weighted ? "no weights: its kernel reads them"
                                                 : "weights: its kernel reads none"));
  }
  return {};
}

Status GpuFusedPool::stage(std::span<const JaggedView> bags, ThreadPool& pool, GpuBags& batch,
                           const ArrangeGpuBlocks& arrange,
                           std::span<const BagsOnGpu> on_gpu) const {
  RECMILL_RETURN_IF_ERROR(check_weights(bags, on_gpu));
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
  add_bags(bags, on_gpu, batch);
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
  copy_bags(bags, on_gpu, pool, batch);
  const auto to = arrays.host(batch.features_);
  for (size_t f = 0; f < features_.size(); ++f) {
    to[f] = arguments(f, bags[features_[f].bags], on_gpu, batch);
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
                                           name_of(f), stream));
  return {};
}

}  // namespace recmill::kernels
