// SPDX-License-Identifier: Apache-2.0
// One rank's training step: lookup, forward, loss, backward, reduce, update.
#pragma once

#include <cstdint>
#include <memory>
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
#include "model/model_options.h"
#include "schema/cluster_spec.h"
#include "step/gradient_reduction.h"
#include "step/optimizer/dense_optimizer.h"
#include "step/rank_batch.h"
#include "step/scorer.h"
#include "step/stage_gate.h"
#include "step/trainer.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// What a rank's trainer has to do, as far as it decides how much memory that takes.
struct TrainerLoad {
  int64_t trained = 0;  // samples of a global batch; 0: nothing is trained
  int64_t scored = 0;   // samples of a global batch that is only scored
  int64_t inputs = 0;   // numbers of a sample that go into the layers
  int64_t states = 0;   // of the dense optimizer, numbers a parameter
  int slices = 1;
  int threads = 1;
  int rank = 0;
  int ranks = 1;
};

/// Layers on the CPU, slice by slice.
class RankTrainer final : public Trainer {
 public:
  /// All referenced objects outlive the trainer. `parameters`: model.parameter_count() floats.
  /// `beside`: sums dense gradients over ranks while rows are updated; null: before they are.
  RankTrainer(const ModelSpec& spec, model::Model& model, store::EmbeddingStore& store,
              DenseOptimizer& dense_optimizer, Communicator& communicator, ThreadPool& pool,
              int slices, Buffer parameters, std::unique_ptr<GradientReduction> beside = nullptr);
  ~RankTrainer() override;

  /// Adds what a trainer takes of the host, dense optimizer and activations included.
  static void need(const model::ModelOptions& options, const model::Model& model,
                   const TrainerLoad& load, MemoryLedger& ledger);

  Status load_parameters() override;
  Result<StepResult> train(const RankBatch& batch, const store::Step& step) override;
  Status predict(const RankBatch& batch, ForwardState& state) override {
    return scorer_.predict(batch, state);
  }
  Result<StepResult> score(const RankBatch& batch) override;
  Status settle() override { return {}; }
  std::span<float> parameters() const override { return parameters_.as<float>(); }
  StageGate& stages() override { return stages_; }

 private:
  struct BlockGradient;
  struct Slice;
  Status bind_gradients(int64_t samples);
  void bind_gradient(const ForwardState::Block& block, BlockGradient& gradient);
  Status forward(const RankBatch& batch, bool training, const Scorer::AfterBlock& after = {});
  void add_loss(const RankBatch& batch, size_t slice, const ForwardState::Block& block,
                std::span<float> logit_gradient);
  Status forward_and_backward(const RankBatch& batch);
  Status backward_phase(int phase, size_t slice, size_t block);
  Status backward_phases();
  void finish(size_t slice);
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
  StageGate stages_;
  const int slices_, first_slice_;  // of the global batch; the first that is own
  const model::EmbeddingLayout layout_;
  Scorer scorer_;

  const Buffer parameters_;
  std::vector<float>
      gradient_;  // [parameters], of the global batch; only where somebody needs it whole
  SubtreeSums slice_gradients_;  // of the iteration in hand, [parameters] each
  OrderedReduce<float> reduce_gradient_;
  OrderedReduce<double> reduce_loss_;
  const std::unique_ptr<GradientReduction> beside_;

  // Of the batch in hand.
  ForwardState state_;
  std::vector<Slice> slice_;                            // [own slices]
  Buffer pooled_gradient_;                              // as ForwardState::pooled
  std::vector<std::vector<float>> sequence_gradients_;  // [unpooled features][lookups][dim]
  std::vector<store::FeatureGradient> gradients_;
  std::vector<float> logit_gradient_;                // [samples]
  std::vector<std::vector<float>> backward_totals_;  // [phases][sum size]
};

}  // namespace recmill::train
