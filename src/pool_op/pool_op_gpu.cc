// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "pool_op/pool_op.h"

namespace recmill::pool_op {
namespace {

namespace gpu = kernels::gpu;

/// Takes places for arrays in one piece of memory.
class Layout {
 public:
  int64_t take(int64_t bytes) {
    constexpr int64_t kAlignment = 16;
    const int64_t at = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

class Call {
 public:
  explicit Call(const Inputs& inputs) : inputs_(inputs) {
    for (size_t f = 0; f < inputs.bags.size(); ++f) {
      const GpuFeature& of = model.gpu[f];
      const bool chosen = !of.only_one_each || has_one_each(inputs.bags[f]);
      places_.push_back(chosen ? &of.chosen : &of.otherwise);
    }
    map_blocks();
  }

  std::string run(CallMemory& memory, int gpu, void* stream) {
    stage(memory);
    memory.send();
    for (size_t k = 0; k < launches_.size(); ++k) {
      const auto& [first, blocks] = launches_[k];
      if (blocks == 0) continue;
      gpu::PoolArguments arguments = arguments_;
      arguments.blocks += first;
      const std::string problem =
          launch(model.gpu_kernels[k], static_cast<unsigned>(blocks), gpu::kBlockThreads,
                 &arguments, model.gpu_driver, gpu, stream);
      if (!problem.empty()) return problem;
    }
    return "";
  }

 private:
  struct Launch {  // of one kernel
    int64_t first_block, blocks;
  };

  // Of all kernels, one after the other.
  void map_blocks() {
    std::vector<std::vector<gpu::PoolBlock>> of_kernel(model.gpu_kernels.size());
    for (size_t f = 0; f < places_.size(); ++f)
      kernels::map_gpu_blocks(inputs_.bags[f], places_[f]->parts, static_cast<int32_t>(f),
                              of_kernel[places_[f]->of.kernel]);
    for (auto& blocks : of_kernel) {
      kernels::put_heaviest_first(
          [&](const gpu::PoolBlock& block) {
            return kernels::weight_of(block, inputs_.bags[block.feature],
                                      places_[block.feature]->parts, model.dim_of(block.feature));
          },
          blocks);
      launches_.push_back({std::ssize(blocks_), std::ssize(blocks)});
      blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
    }
  }

  // Features, outputs, blocks and offsets go to the GPU in one copy.
  void stage(CallMemory& memory) {
    Layout layout;
    const auto features = std::ssize(inputs_.bags);
    const int64_t features_at = layout.take(features * sizeof(gpu::PoolFeature)),
                  outputs_at = layout.take(features * sizeof(gpu::PoolOutput)),
                  blocks_at = layout.take(std::ssize(blocks_) * sizeof(gpu::PoolBlock));
    std::vector<int64_t> offsets_at;
    for (const JaggedView& bags : inputs_.bags)
      offsets_at.push_back(layout.take((bags.samples + 1) * sizeof(int64_t)));
    const auto [host, device] = memory.stage(layout.bytes());
    const auto partial = partial_sums(memory);
    const auto to = reinterpret_cast<gpu::PoolFeature*>(host + features_at);
    const auto outputs = reinterpret_cast<gpu::PoolOutput*>(host + outputs_at);
    for (size_t f = 0; f < inputs_.bags.size(); ++f) {
      const JaggedView& bags = inputs_.bags[f];
      std::memcpy(host + offsets_at[f], bags.offsets, (bags.samples + 1) * sizeof(int64_t));
      to[f] = {};
      to[f].offsets = reinterpret_cast<const i64*>(device + offsets_at[f]);
      to[f].lookups = bags.rows;
      to[f].weights = bags.weights;
      to[f].rows = static_cast<const u8*>(inputs_.tables[model.features[f].table].data);
      to[f].samples = bags.samples;
      to[f].run_sums = partial[f].sums;
      to[f].arrivals = partial[f].arrivals;
      to[f].schedule = places_[f]->of.schedule;
      outputs[f] = {inputs_.outputs[f], model.dim_of(f)};
    }
    std::memcpy(host + blocks_at, blocks_.data(), blocks_.size() * sizeof(gpu::PoolBlock));
    arguments_.features = reinterpret_cast<const gpu::PoolFeature*>(device + features_at);
    arguments_.outputs = reinterpret_cast<const gpu::PoolOutput*>(device + outputs_at);
    arguments_.blocks = reinterpret_cast<const gpu::PoolBlock*>(device + blocks_at);
  }

  /// What features with several blocks for a bag need besides.
  struct Partial {
    float* sums;
    u32* arrivals;
  };
  std::vector<Partial> partial_sums(CallMemory& memory) const {
    Layout sums, arrivals;
    std::vector<std::pair<int64_t, int64_t>> at;
    for (size_t f = 0; f < places_.size(); ++f) {
      const JaggedView& bags = inputs_.bags[f];
      const bool needs = places_[f]->parts.piece != 0;
      const int64_t runs = needs ? bags.lookups() / gpu::kRun + bags.samples : 0;
      at.emplace_back(sums.take(runs * model.dim_of(f) * sizeof(float)),
                      arrivals.take(needs ? bags.samples * sizeof(u32) : 0));
    }
    std::byte* const of_sums = sums.bytes() > 0 ? memory.scratch(sums.bytes()) : nullptr;
    std::byte* const of_arrivals = arrivals.bytes() > 0 ? memory.zeros(arrivals.bytes()) : nullptr;
    std::vector<Partial> partial;
    for (const auto& [sums_at, arrivals_at] : at)
      partial.push_back({reinterpret_cast<float*>(of_sums + sums_at),
                         reinterpret_cast<u32*>(of_arrivals + arrivals_at)});
    return partial;
  }

  const Inputs& inputs_;
  std::vector<const GpuPlace*> places_;  // [features]
  std::vector<gpu::PoolBlock> blocks_;
  std::vector<Launch> launches_;  // [kernels]
  gpu::PoolArguments arguments_ = {};
};

}  // namespace

std::string pool_on_gpu(const Inputs& inputs, CallMemory& memory, int gpu, void* stream) {
  return Call(inputs).run(memory, gpu, stream);
}

}  // namespace recmill::pool_op
