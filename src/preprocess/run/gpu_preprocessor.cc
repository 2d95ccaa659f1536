// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/gpu_preprocessor.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>
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

/// Memory of bags, which goes from batch to batch. Whoever has bags keeps it.
class BagMemory : public std::enable_shared_from_this<BagMemory> {
 public:
  explicit BagMemory(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  /// Bags that nobody reads any more, or new ones.
  Result<std::shared_ptr<MadeBags>> take() {
    std::unique_ptr<MadeBags> bags;
    {
      const std::lock_guard lock(mutex_);
      if (!resting_.empty()) {
        bags = std::move(resting_.front());
        resting_.pop_front();
      }
    }
    if (bags == nullptr) bags = std::make_unique<MadeBags>(*gpu_);
    RECMILL_RETURN_IF_ERROR(bags->finish());
    return std::shared_ptr<MadeBags>(bags.release(), [pool = shared_from_this()](MadeBags* of) {
      const std::lock_guard lock(pool->mutex_);
      pool->resting_.emplace_back(of);
    });
  }

 private:
  const std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<MadeBags>> resting_;  // guarded by mutex_
};

/// The ops of all chains, and borders of their buckets, as they are sent once.
struct StagedOps {
  StagedArrays arrays;
  std::vector<StagedArray<GpuOp>> of_chains;
  std::vector<StagedArray<float>> borders;  // of each op that has some

  explicit StagedOps(const std::vector<std::vector<GpuOp>>& ops) {
    for (const auto& chain : ops) {
      of_chains.push_back(arrays.add<GpuOp>(std::ssize(chain)));
      for (const GpuOp& op : chain)
        if (op.kind == GpuOpKind::bucketize)
          borders.push_back(arrays.add<float>(op.bucketize.count));
    }
  }
};

class GpuOps final : public StatelessOps {
 public:
  GpuOps(std::shared_ptr<Gpu> gpu, DividedChains divided, RowReaders readers, ThreadPool& pool)
      : gpu_(std::move(gpu)),
        pool_(pool),
        readers_(readers),
        bags_(std::make_shared<BagMemory>(gpu_)),
        on_gpu_(std::move(divided.gpu)),
        on_cpu_(pool, std::move(divided.cpu)),
        chains_(std::move(divided.chains)),
        ops_(divided.ops) {}

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
    RECMILL_ASSIGN_OR_RETURN(const auto bags, bags_->take());
    GpuBatch batch(call, on_gpu_, chains_, memory_, *bags, readers_.host);
    if (batch.blocks() == 0) {
      for (const int f : on_gpu_.features) call.output(f).on_host = true;  // without lookups
      return on_cpu_.run(call);
    }
    RECMILL_RETURN_IF_ERROR(batch.send(*gpu_, pool_, stream_));
    const Grid grid{{static_cast<unsigned>(batch.blocks())}, {kChainThreads}};
    RECMILL_RETURN_IF_ERROR(gpu_->launch(kernel_, grid, batch.arguments(), stream_));
    RECMILL_RETURN_IF_ERROR(bags->made_by(stream_));
    RECMILL_RETURN_IF_ERROR(batch.fetch(stream_));
    const Status status = on_cpu_.run(call);  // meanwhile
    RECMILL_RETURN_IF_ERROR(stream_.synchronize());
    if (readers_.gpu) call.sparse.on_gpu = bags;
    RECMILL_RETURN_IF_ERROR(batch.take(pool_));
    return status;
  }

  bool keeps_on_gpu(int feature) const override {
    return !readers_.host && std::ranges::binary_search(on_gpu_.features, feature);
  }

 private:
  /// To stay there.
  Status send_ops(const std::vector<std::vector<GpuOp>>& ops) {
    StagedArrays& arrays = ops_.arrays;
    RECMILL_RETURN_IF_ERROR(arrays.allocate(*gpu_, "ops of preprocessing"));
    size_t next = 0;  // of borders
    for (size_t c = 0; c < ops.size(); ++c) {
      chains_[c].ops = arrays.device(ops_.of_chains[c]);
      const auto to = arrays.host(ops_.of_chains[c]);
      std::ranges::copy(ops[c], to.begin());
      for (GpuOp& op : to) {
        if (op.kind != GpuOpKind::bucketize) continue;
        const StagedArray<float>& there = ops_.borders[next++];
        std::copy_n(op.bucketize.borders, there.count, arrays.host(there).begin());
        op.bucketize.borders = arrays.device(there);
      }
    }
    RECMILL_RETURN_IF_ERROR(arrays.send(stream_));
    return stream_.synchronize();
  }

  const std::shared_ptr<Gpu> gpu_;  // outlives what follows
  ThreadPool& pool_;
  const RowReaders readers_;
  const std::shared_ptr<BagMemory> bags_;
  const ChainSubset on_gpu_;  // features ascending
  PoolOps on_cpu_;
  std::vector<GpuChain> chains_;  // of on_gpu_
  GpuCode code_;
  GpuKernel kernel_;
  StagedOps ops_;
  std::mutex mutex_;
  GpuBatchMemory memory_;  // guarded by mutex_, and the stream
  GpuStream stream_;
};

}  // namespace

Result<std::unique_ptr<Preprocessor>> make_gpu_preprocessor(
    const FeatureGraph& graph, const ModelSpec& model, std::shared_ptr<Gpu> gpu, RowReaders readers,
    const CompileForGpu& compile, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto compiled, preprocess::compile(graph, model));
  DividedChains divided(compiled);
  const auto ops = divided.ops;
  auto on_gpu = std::make_unique<GpuOps>(std::move(gpu), std::move(divided), readers, pool);
  RECMILL_RETURN_IF_ERROR(on_gpu->start(ops, compile));
  return preprocessor_with(std::move(compiled), pool, std::move(on_gpu));
}

Result<GpuPreprocessorNeed> gpu_preprocessor_need(const FeatureGraph& graph, const ModelSpec& model,
                                                  const PreprocessedSize& size,
                                                  RowReaders readers) {
  RECMILL_ASSIGN_OR_RETURN(const auto compiled, preprocess::compile(graph, model));
  const DividedChains divided(compiled);
  const int64_t samples = size.samples;
  StagedArrays inputs, results, offsets, rows;
  std::set<std::pair<Source, int>> columns;
  const auto add_column = [&](const Chain& chain, int64_t lookups) {
    if (!columns.insert({chain.source, chain.column_index}).second) return;
    if (chain.source == Source::dense) {
      inputs.add<float>(samples);
      return;
    }
    inputs.add<i64>(samples + 1);
    inputs.add<u64>(lookups);
    inputs.add<float>(chain.weighted ? lookups : 0);
  };
  if (divided.gpu.dense) {
    for (const CompiledChain& chain : compiled.dense) add_column(chain.chain, samples);
    results.add<float>(samples * std::ssize(compiled.dense));
    results.add<FlattenedCounts>(compiled.dense_ops);
  }
  for (const int f : divided.gpu.features) {
    const Chain& chain = compiled.features[f].chain;
    const int64_t lookups = size.lookups[compiled.output_of_feature[f]];
    add_column(chain, lookups);
    if (chain.source == Source::ids) offsets.add<i64>(samples + 1);
    rows.add<float>(chain.weighted ? lookups : 0);
    rows.add<u64>(lookups);
  }
  results.add<IdCounts>(std::ssize(divided.gpu.features));
  const auto chains = std::ssize(divided.chains);
  inputs.add<GpuChain>(chains);
  inputs.add<ChainTile>(chains * ((samples + kGpuTileSamples - 1) / kGpuTileSamples));
  GpuPreprocessorNeed need;
  need.columns = inputs.need();
  need.columns += results.need();
  need.columns += StagedOps(divided.ops).arrays.need();
  need.rows = readers.host ? rows.need() : rows.need_on_gpu();
  need.offsets = offsets.need();
  return need;
}

Result<std::vector<char>> features_made_on_gpu(const FeatureGraph& graph, const ModelSpec& model) {
  RECMILL_ASSIGN_OR_RETURN(const auto compiled, preprocess::compile(graph, model));
  const DividedChains divided(compiled);
  std::vector<char> of_features(compiled.features.size());
  for (const int f : divided.gpu.features) of_features[f] = host_finishes(compiled, f) ? 0 : 1;
  std::vector<char> of_outputs;
  for (const int f : compiled.feature_of_output) of_outputs.push_back(of_features[f]);
  return of_outputs;
}

}  // namespace recmill::preprocess
