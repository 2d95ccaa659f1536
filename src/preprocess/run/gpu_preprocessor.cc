// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/gpu_preprocessor.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "preprocess/run/gpu_batch.h"
#include "preprocess/run/gpu_preprocess_source.h"
#include "preprocess/run/pool_ops.h"

namespace recmill::preprocess {
namespace {

using kernels::codegen::CompileForGpu;
using kernels::codegen::GpuCode;
using kernels::codegen::GpuSource;

/// A chain's ops as a kernel is given them; none: the CPU keeps the chain.
std::optional<std::vector<GpuOp>> gpu_ops(const CompiledChain& chain) {
  if (chain.dictionary >= 0) return std::nullopt;
  std::vector<GpuOp> ops;
  for (const auto& op : chain.ops) {
    const auto on_gpu = op->on_gpu();
    if (!on_gpu) return std::nullopt;
    ops.push_back(*on_gpu);
  }
  return ops;
}

/// A graph's chains, divided.
struct DividedChains {
  ChainSubset gpu, cpu;
  std::vector<GpuChain> chains;         // of `gpu`: dense ones, then features; how many ops
  std::vector<std::vector<GpuOp>> ops;  // [chains]

  explicit DividedChains(const CompiledGraph& graph) {
    gpu.dense = std::ranges::all_of(
        graph.dense, [](const CompiledChain& chain) { return gpu_ops(chain).has_value(); });
    cpu.dense = !gpu.dense;
    if (gpu.dense)
      for (const CompiledChain& chain : graph.dense) add(chain, *gpu_ops(chain));
    for (size_t f = 0; f < graph.features.size(); ++f) {
      auto of_feature = gpu_ops(graph.features[f]);
      (of_feature ? gpu : cpu).features.push_back(static_cast<int>(f));
      if (of_feature) add(graph.features[f], *std::move(of_feature));
    }
  }

 private:
  void add(const CompiledChain& chain, std::vector<GpuOp> of_chain) {
    GpuChain& counted = chains.emplace_back();
    counted.dense_ops = static_cast<i32>(chain.dense.size());
    counted.bucket_ops = chain.bucket != nullptr ? 1 : 0;
    counted.bag_ops = static_cast<i32>(chain.bags.size());
    counted.id_ops = static_cast<i32>(chain.ids.size());
    ops.push_back(std::move(of_chain));
  }
};

class GpuOps final : public StatelessOps {
 public:
  GpuOps(std::shared_ptr<Gpu> gpu, DividedChains divided, ThreadPool& pool)
      : gpu_(std::move(gpu)),
        pool_(pool),
        on_gpu_(std::move(divided.gpu)),
        on_cpu_(pool, std::move(divided.cpu)),
        chains_(std::move(divided.chains)) {}

  /// Once, before run(). Fails as `compile`, and as the GPU.
  Status start(const std::vector<std::vector<GpuOp>>& ops, const CompileForGpu& compile) {
    const GpuSource source = gpu_preprocess_source("Recmill");
    RECMILL_ASSIGN_OR_RETURN(auto codes, compile({&source, 1}));
    code_ = std::move(codes.front());
    RECMILL_ASSIGN_OR_RETURN(kernel_, gpu_->load(code_.code));
    RECMILL_ASSIGN_OR_RETURN(stream_, gpu_->open_stream());
    return send_ops(ops);
  }

  /// Batches take turns.
  Status run(PreprocessCall& call) override {
    const std::lock_guard lock(mutex_);
    GpuBatch batch(call, on_gpu_, chains_, memory_);
    if (batch.blocks() == 0) return on_cpu_.run(call);
    RECMILL_RETURN_IF_ERROR(batch.send(*gpu_, pool_, stream_));
    const Grid grid{{static_cast<unsigned>(batch.blocks())}, {kChainThreads}};
    RECMILL_RETURN_IF_ERROR(gpu_->launch(kernel_, grid, batch.arguments(), stream_));
    RECMILL_RETURN_IF_ERROR(batch.fetch(stream_));
    const Status status = on_cpu_.run(call);  // meanwhile
    RECMILL_RETURN_IF_ERROR(stream_.synchronize());
    batch.take(pool_);
    return status;
  }

 private:
  /// The ops of all chains, and their borders, to stay there.
  Status send_ops(const std::vector<std::vector<GpuOp>>& ops) {
    std::vector<StagedArray<GpuOp>> of_chains;
    std::vector<StagedArray<float>> borders;
    for (const auto& chain : ops) {
      of_chains.push_back(ops_.add<GpuOp>(std::ssize(chain)));
      for (const GpuOp& op : chain)
        if (op.kind == GpuOpKind::bucketize) borders.push_back(ops_.add<float>(op.bucketize.count));
    }
    RECMILL_RETURN_IF_ERROR(ops_.allocate(*gpu_, "ops of preprocessing"));
    size_t next = 0;  // of borders
    for (size_t c = 0; c < ops.size(); ++c) {
      chains_[c].ops = ops_.device(of_chains[c]);
      const auto to = ops_.host(of_chains[c]);
      std::ranges::copy(ops[c], to.begin());
      for (GpuOp& op : to) {
        if (op.kind != GpuOpKind::bucketize) continue;
        const StagedArray<float>& there = borders[next++];
        std::copy_n(op.bucketize.borders, there.count, ops_.host(there).begin());
        op.bucketize.borders = ops_.device(there);
      }
    }
    RECMILL_RETURN_IF_ERROR(ops_.send(stream_));
    return stream_.synchronize();
  }

  const std::shared_ptr<Gpu> gpu_;  // outlives what follows
  ThreadPool& pool_;
  const ChainSubset on_gpu_;
  PoolOps on_cpu_;
  std::vector<GpuChain> chains_;  // of on_gpu_
  GpuCode code_;
  GpuKernel kernel_;
  StagedArrays ops_;
  std::mutex mutex_;
  GpuBatchMemory memory_;  // guarded by mutex_, and the stream
  GpuStream stream_;
};

}  // namespace

Result<std::unique_ptr<Preprocessor>> make_gpu_preprocessor(const FeatureGraph& graph,
                                                            const ModelSpec& model,
                                                            std::shared_ptr<Gpu> gpu,
                                                            const CompileForGpu& compile,
                                                            ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto compiled, preprocess::compile(graph, model));
  DividedChains divided(compiled);
  const auto ops = std::move(divided.ops);
  auto on_gpu = std::make_unique<GpuOps>(std::move(gpu), std::move(divided), pool);
  RECMILL_RETURN_IF_ERROR(on_gpu->start(ops, compile));
  return preprocessor_with(std::move(compiled), pool, std::move(on_gpu));
}

}  // namespace recmill::preprocess
