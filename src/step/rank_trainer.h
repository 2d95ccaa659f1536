// SPDX-License-Identifier: Apache-2.0
// One rank's training step: lookup, forward, loss, backward, reduce, update.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/ordered_reduce.h"
#include "comm/subtree_sums.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "device/thread_pool.h"
#include "model/model.h"
#include "step/gradient_reduction.h"
#include "step/optimizer/dense_optimizer.h"
#include "step/rank_batch.h"
#include "step/stage_clock.h"
#include "step/trainer.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// Layers on the CPU, slice by slice.
class RankTrainer final : public Trainer {
 public:
  /// All referenced objects outlive the trainer. `parameters`: model.parameter_count() floats.
  /// `beside`: sums dense gradients over ranks while rows are updated; null: before they are.
  RankTrainer(const ModelSpec& spec, model::Model& model, store::EmbeddingStore& store,
              DenseOptimizer& dense_optimizer, Communicator& communicator, ThreadPool& pool,
              int slices, Buffer parameters, std::unique_ptr<GradientReduction> beside = nullptr);
  ~RankTrainer() override;

  Status load_parameters() override;
  Result<StepResult> train(const RankBatch& batch, const store::Step& step) override;
  Result<std::span<const float>> predict(const RankBatch& batch) override;
  Result<StepResult> score(const RankBatch& batch) override;
  Status settle() override { return {}; }
  std::span<float> parameters() const override { return parameters_.as<float>(); }
  StageClock& stages() override { return stages_; }

 private:
  struct Block;
  struct Slice;
  Status bind(const RankBatch& batch, bool training);
  void bind_slice(const RankBatch& batch, size_t index, bool training);
  void bind_block(const RankBatch& batch, int64_t begin, int64_t samples, bool training,
                  Block& block);
  Status run_slices(const std::function<Status(Slice&)>& body);
  template <typename T>
  Status reduce_slices(OrderedReduce<T>& reduce,
                       const std::function<const T*(size_t slice)>& part_of, std::span<T> total);
  Status reduce_phase(int64_t size, std::vector<float>& total);
  std::unique_ptr<model::SliceState> take_state();
  void give_state_back(std::unique_ptr<model::SliceState> state);
  void finish(Slice& slice);
  Status forward_phase(int phase, Slice& slice, Block& block);
  Status backward_phase(int phase, Slice& slice, Block& block);
  void add_loss(Slice& slice, Block& block) const;
  Status run_blocks(Slice& slice);
  Status score_in_blocks(const RankBatch& batch);
  Status forward(const RankBatch& batch, bool training);
  Status backward_phases();
  bool needs_whole_gradient() const;
  Status sum_gradients();
  Status update_parameters(const store::Step& step);
  Status update_rows(const RankBatch& batch, const store::Step& step);
  Status update(const RankBatch& batch, const store::Step& step);
  Result<StepResult> result(const RankBatch& batch);

  const ModelSpec& spec_;
  model::Model& model_;
  store::EmbeddingStore& store_;
  DenseOptimizer& dense_optimizer_;
  Communicator& communicator_;
  ThreadPool& pool_;
  Stream stream_;
  StageClock stages_;
  const int slices_;
  const model::EmbeddingLayout layout_;

  const Buffer parameters_;
  std::vector<float>
      gradient_;  // [parameters], of the global batch; only where somebody needs it whole
  SubtreeSums slice_gradients_;                // of the iteration in hand, [parameters] each
  std::vector<std::unique_ptr<Slice>> slice_;  // [own slices]
  std::mutex state_mutex_;
  // Those that no slice holds; guarded by state_mutex_. Last in, first out: of a model with one
  // phase, each thread works in one and the same state.
  std::vector<std::unique_ptr<model::SliceState>> free_states_;
  OrderedReduce<float> reduce_gradient_;
  OrderedReduce<float> reduce_phase_;
  OrderedReduce<double> reduce_loss_;
  const std::unique_ptr<GradientReduction> beside_;

  // Of the batch in hand.
  int64_t global_samples_ = 0;
  // [samples][layout.stride], on huge pages: the store goes through them a feature at a time, so
  // that neighbouring accesses lie a sample apart.
  Buffer pooled_, pooled_gradient_;
  std::vector<std::vector<float>> sequences_, sequence_gradients_;  // [unpooled][lookups][dim]
  std::vector<store::FeatureOutput> outputs_;
  std::vector<store::FeatureGradient> gradients_;
  std::vector<float> logits_, logit_gradient_;                        // [samples]
  std::vector<std::vector<float>> forward_totals_, backward_totals_;  // [phases][sum size]
};

}  // namespace recmill::train
