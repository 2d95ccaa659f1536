// SPDX-License-Identifier: Apache-2.0
// One rank's training step with everything on one GPU: rows, layers, loss and optimizers. A step is
// enqueued as a whole, but for updates, which wait until the loss is known to be finite: the GPU
// computes gradients meanwhile. Of several ranks each has the layers of its own samples; gradients
// of parameters are added over ranks, in their order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "batch/feature_layout.h"
#include "comm/communicator.h"
#include "device/buffer.h"
#include "device/gpu/gpu.h"
#include "device/stream.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "model/gpu_layers.h"
#include "step/gpu/gpu_rank_sum.h"
#include "step/gpu/gpu_step_kernels.h"
#include "step/optimizer/dense_optimizer.h"
#include "step/trainer.h"
#include "store/gpu/gpu_memory.h"
#include "store/gpu/store_on_gpu.h"

namespace recmill::train {

class GpuTrainer final : public Trainer {
 public:
  /// Appends what it takes, beside its store, of batches of which a rank has so many samples:
  /// `layers` of make_model_of_gpu(), `states` of the dense optimizer. Left out is what LibTorch
  /// takes for what lies between layers.
  static void need(const ModelSpec& spec, const model::Model& layers, int64_t states,
                   const store::GpuBatches& batches, int ranks, store::GpuLedger& ledger);
  /// What the host keeps of parameters, and of `states` numbers a parameter of their optimizer.
  static int64_t host_bytes(const model::Model& layers, int64_t states);

  /// Collective. All referenced objects outlive the trainer. `parameters`: as many floats as
  /// layers.model() has. Fails as `compile`, and where the GPU's memory is short.
  static Result<std::unique_ptr<GpuTrainer>> make(const ModelSpec& spec, model::GpuLayers& layers,
                                                  store::StoreOnGpu& store,
                                                  DenseOptimizer& dense_optimizer,
                                                  Communicator& communicator, ThreadPool& pool,
                                                  Buffer parameters,
                                                  const kernels::codegen::CompileForGpu& compile);
  ~GpuTrainer() override;

  Status load_parameters() override;
  /// Dense values, labels and weights, on a stream of their own.
  Result<std::unique_ptr<SentInputs>> send_ahead(const DenseBatch& batch) override;
  Result<StepResult> train(const RankBatch& batch, const store::Step& step) override;
  Status predict(const RankBatch& batch, ForwardState& state) override;
  Result<StepResult> score(const RankBatch& batch) override;
  Status settle() override;
  std::span<float> parameters() const override { return parameters_.as<float>(); }
  StageGate& stages() override { return stages_; }

 private:
  /// Dense values, labels and weights of a batch, on their way.
  struct Inputs {
    PinnedBuffer host;
    GpuBuffer there;      // alike
    GpuEvent sent, used;  // whose copies are done; what reads them is
  };
  class InputsOfBatch;

  GpuTrainer(const ModelSpec& spec, model::GpuLayers& layers, store::StoreOnGpu& store,
             DenseOptimizer& dense_optimizer, Communicator& communicator, ThreadPool& pool,
             Buffer parameters, GpuStepKernels kernels);
  Status allocate();
  Status reserve_batch(const RankBatch& batch, bool training);
  Result<std::unique_ptr<Inputs>> take_inputs();
  Result<std::unique_ptr<Inputs>> send_inputs(const DenseBatch& batch);
  void give_back(std::unique_ptr<Inputs> inputs);
  Status place_inputs(const RankBatch& batch);
  void place_rows();
  model::GpuLayersInput layers_input(const RankBatch& batch, bool training) const;
  Status forward(const RankBatch& batch, bool training);
  Status backward();
  std::span<const float> logits(const RankBatch& batch) const;
  Result<StepResult> result(const RankBatch& batch);
  Result<double> add_over_ranks(double own);
  Status name_cause(const RankBatch& batch);
  Status name_own_cause(const RankBatch& batch);
  Status send_statistics();
  void finish_iteration(const RankBatch& batch);

  const ModelSpec& spec_;
  const FeatureLayout features_;
  model::GpuLayers& layers_;
  store::StoreOnGpu& store_;
  DenseOptimizer& dense_optimizer_;
  Communicator& communicator_;
  Gpu& gpu_;
  GpuStream& gpu_stream_;  // the store's
  Stream stream_;          // of it
  StageGate stages_;
  GpuStepKernels kernels_;
  std::unique_ptr<GpuRankSum> rank_sum_;  // null: there is one rank

  const Buffer parameters_;  // those that are not trained are current, the others after settle()
  GpuBuffer parameters_there_, gradient_;
  PinnedBuffer staging_;               // [parameters]
  bool statistics_are_newer_ = false;  // what is not trained, than on the GPU

  GpuStream inputs_stream_;                      // of whoever sends them: one thread at a time
  std::mutex resting_mutex_;                     // guards what follows
  std::deque<std::unique_ptr<Inputs>> resting_;  // to be used again

  // Of the batch in hand.
  GpuStream results_stream_;
  GpuBuffer inputs_;  // dense, labels, weights: at one place for all batches, which graphs name
  GpuBuffer pooled_, pooled_gradient_;                     // [samples][layout.stride]
  std::vector<GpuBuffer> sequences_, sequence_gradients_;  // [unpooled][lookups][dim]
  std::vector<store::FeatureOutput> outputs_;
  std::vector<store::FeatureGradient> gradients_;
  GpuBuffer logit_gradient_;  // [samples]
  GpuBuffer results_there_;   // sums of the loss, totals, logits
  PinnedBuffer results_;      // alike
};

}  // namespace recmill::train
