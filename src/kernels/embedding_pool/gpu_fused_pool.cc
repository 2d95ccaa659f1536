// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/gpu_fused_pool.h"

#include <algorithm>
#include <cstring>

namespace recmill::kernels {
namespace {

constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// So much more than is asked for, so that a batch a little larger than the last needs no memory.
size_t with_slack(size_t bytes) {
  return bytes + bytes / 4;
}

}  // namespace

/// Where the arrays of a batch stand, one behind the other, in pinned memory as on the GPU.
class GpuFusedPool::Layout {
 public:
  explicit Layout(size_t features)
      : offsets_(features), lookups_(features), weights_(features, 0) {}

  template <class T>
  size_t add(int64_t count) {
    const size_t at = bytes_;
    bytes_ += aligned(static_cast<size_t>(count) * sizeof(T));
    return at;
  }
  void add_bags(size_t feature, const JaggedView& bags) {
    offsets_[feature] = add<int64_t>(bags.samples + 1);
    lookups_[feature] = add<int64_t>(bags.lookups());
    if (bags.weights != nullptr) weights_[feature] = add<float>(bags.lookups());
  }
  size_t bytes() const { return bytes_; }

  /// Copies the bags of a feature, whose first lookup becomes number 0, and says where they will
  /// be.
  gpu::PoolFeature copy(size_t feature, const JaggedView& bags, std::byte* staged,
                        std::byte* sent) const {
    const int64_t count = bags.lookups(), first = bags.offsets[0];
    auto* offsets = reinterpret_cast<int64_t*>(staged + offsets_[feature]);
    for (int64_t i = 0; i <= bags.samples; ++i) offsets[i] = bags.offsets[i] - first;
    std::memcpy(staged + lookups_[feature], bags.rows + first, count * sizeof(int64_t));
    gpu::PoolFeature to = {};
    to.offsets = reinterpret_cast<const i64*>(sent + offsets_[feature]);
    to.lookups = reinterpret_cast<const i64*>(sent + lookups_[feature]);
    to.samples = bags.samples;
    if (bags.weights != nullptr) {
      std::memcpy(staged + weights_[feature], bags.weights + first, count * sizeof(float));
      to.weights = reinterpret_cast<const float*>(sent + weights_[feature]);
    }
    return to;
  }

 private:
  std::vector<size_t> offsets_, lookups_, weights_;  // [features]
  size_t bytes_ = 0;
};

GpuFusedPool::GpuFusedPool(Gpu& gpu, std::vector<GpuKernel> kernels,
                           std::vector<GpuPooledFeature> features)
    : gpu_(gpu), kernels_(std::move(kernels)), features_(std::move(features)) {}

Status GpuFusedPool::reserve(GpuBags& batch, size_t bytes, int64_t run_floats,
                             int64_t arrivals) const {
  const auto grow = [&](auto& buffer, size_t wanted, auto&& allocate) -> Status {
    if (buffer.size() >= wanted) return {};
    buffer = {};
    RECMILL_ASSIGN_OR_RETURN(buffer, allocate(with_slack(wanted)));
    return {};
  };
  const auto on_gpu = [&](size_t size) { return gpu_.allocate(size, "bags of a batch"); };
  const auto pinned = [&](size_t size) { return gpu_.allocate_pinned(size, "bags of a batch"); };
  RECMILL_RETURN_IF_ERROR(grow(batch.staged_, bytes, pinned));
  RECMILL_RETURN_IF_ERROR(grow(batch.sent_, bytes, on_gpu));
  RECMILL_RETURN_IF_ERROR(grow(batch.run_sums_, run_floats * sizeof(float), on_gpu));
  return grow(batch.arrivals_, arrivals * sizeof(u32), on_gpu);
}

Status GpuFusedPool::stage(std::span<const JaggedView> bags, GpuBags& batch) const {
  RECMILL_CHECK(bags.size() == features_.size());
  std::vector<std::vector<gpu::PoolBlock>> blocks(kernels_.size());
  Layout layout(features_.size());
  int64_t run_floats = 0, arrivals = 0;
  std::vector<int64_t> run_sums_at(features_.size()), arrivals_at(features_.size());
  for (size_t f = 0; f < features_.size(); ++f) {
    const GpuPooledFeature& feature = features_[f];
    map_gpu_blocks(bags[f], feature.parts, static_cast<int32_t>(f), blocks[feature.kernel]);
    layout.add_bags(f, bags[f]);
    run_sums_at[f] = run_floats;
    arrivals_at[f] = arrivals;
    if (feature.parts.piece == 0) continue;
    run_floats += (bags[f].lookups() / gpu::kRun + bags[f].samples) * feature.dim;
    arrivals += bags[f].samples;
  }
  int64_t all_blocks = 0;
  batch.launches_.clear();
  for (const auto& of_kernel : blocks) {
    batch.launches_.push_back({all_blocks, std::ssize(of_kernel)});
    all_blocks += std::ssize(of_kernel);
  }
  batch.features_at_ = layout.add<gpu::PoolFeature>(std::ssize(features_));
  batch.outputs_at_ = layout.add<gpu::PoolOutput>(std::ssize(features_));
  batch.blocks_at_ = layout.add<gpu::PoolBlock>(all_blocks);
  batch.bytes_ = layout.bytes();
  RECMILL_RETURN_IF_ERROR(reserve(batch, batch.bytes_, run_floats, arrivals));
  std::byte* const staged = batch.staged_.as<std::byte>().data();
  auto* const sent = batch.sent_.address<std::byte>();
  auto* to = reinterpret_cast<gpu::PoolFeature*>(staged + batch.features_at_);
  for (size_t f = 0; f < features_.size(); ++f) {
    to[f] = layout.copy(f, bags[f], staged, sent);
    to[f].rows = features_[f].rows;
    to[f].schedule = features_[f].schedule;
    to[f].run_sums = batch.run_sums_.address<float>() + run_sums_at[f];
    to[f].arrivals = batch.arrivals_.address<u32>() + arrivals_at[f];
  }
  auto* at = reinterpret_cast<gpu::PoolBlock*>(staged + batch.blocks_at_);
  for (const auto& of_kernel : blocks) at = std::copy(of_kernel.begin(), of_kernel.end(), at);
  return {};
}

Status GpuFusedPool::send(GpuBags& batch, GpuStream& stream) const {
  RECMILL_RETURN_IF_ERROR(stream.to_device(batch.sent_, batch.staged_, batch.bytes_));
  return batch.arrivals_.size() == 0 ? Status() : stream.zero(batch.arrivals_);
}

Status GpuFusedPool::run(GpuBags& batch, std::span<const gpu::PoolOutput> outputs,
                         GpuStream& stream) const {
  RECMILL_CHECK(outputs.size() == features_.size());
  std::byte* const staged = batch.staged_.as<std::byte>().data();
  std::memcpy(staged + batch.outputs_at_, outputs.data(), outputs.size_bytes());
  RECMILL_RETURN_IF_ERROR(
      stream.to_device(batch.sent_, batch.staged_, outputs.size_bytes(), batch.outputs_at_));
  auto* const sent = batch.sent_.address<std::byte>();
  gpu::PoolArguments arguments = {};
  arguments.features = reinterpret_cast<const gpu::PoolFeature*>(sent + batch.features_at_);
  arguments.outputs = reinterpret_cast<const gpu::PoolOutput*>(sent + batch.outputs_at_);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const auto [first, blocks] = batch.launches_[k];
    if (blocks == 0) continue;
    arguments.blocks = reinterpret_cast<const gpu::PoolBlock*>(sent + batch.blocks_at_) + first;
    const Grid grid{{static_cast<unsigned>(blocks)}, {gpu::kBlockThreads}};
    RECMILL_RETURN_IF_ERROR(gpu_.launch(kernels_[k], grid, arguments, stream));
  }
  return {};
}

}  // namespace recmill::kernels
