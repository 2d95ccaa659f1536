// SPDX-License-Identifier: Apache-2.0
// What `bench train` works on: a DLRM 13-512-256-64-16 and 512-256-1 over 26 tables of dimension
// 16, SGD, batches in memory, the same for both sides.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "bench/gpu_machine.h"
#include "comm/threads.h"
#include "model/gpu_layers.h"
#include "model/model_options.h"
#include "step/optimizer/dense_optimizer.h"
#include "step/rank_trainer.h"
#include "store/embedding_store.h"

namespace recmill::bench {

struct TrainShape {
  std::string name;
  int64_t samples = 2048;  // of a batch
  int64_t batches = 16;
  int64_t passes = 1;  // over the batches in each repetition
  model::LayerPrecision precision = model::LayerPrecision::float32;
  bool graphs = false;  // on a GPU: layers are launched as graphs
};

/// Dense values, labels and ids of all batches: functions of the shape. Those of the samples of one
/// rank of so many.
std::vector<train::RankBatch> make_train_batches(const TrainShape& shape, ThreadPool& pool,
                                                 int rank = 0, int ranks = 1);

/// A rank trainer over its own store, with the initial rows that pytorch_dlrm.py makes by itself.
class TrainWorkload {
 public:
  /// All but the shape outlive the workload. The batches are those of the communicator's rank.
  /// `beside` as for train::RankTrainer.
  static Result<std::unique_ptr<TrainWorkload>> make(
      const TrainShape& shape, std::vector<train::RankBatch>& batches, Communicator& communicator,
      ThreadPool& pool, std::unique_ptr<train::GradientReduction> beside = nullptr);
  /// All of it on a GPU, which it takes.
  static Result<std::unique_ptr<TrainWorkload>> make_on_gpu(const TrainShape& shape,
                                                            std::vector<train::RankBatch>& batches,
                                                            Communicator& communicator,
                                                            ThreadPool& pool, GpuMachine machine);

  /// One iteration: distinct rows, lookup, forward, backward, both optimizers. The mean log loss
  /// before the update.
  Result<double> train(int64_t batch);
  /// One after the other, each prepared while the one before is trained, to the end of the last.
  Status train_ahead(std::span<const int64_t> batches);
  /// Before the first train(): the folder that pytorch_dlrm.py reads.
  Status write(Files& files, const std::string& folder) const;
  /// Floating-point operations of one sample's forward and backward: 2 for each weight in each of
  /// the three products of a layer (two in the first one, whose input needs no gradient), and 6 for
  /// each pair of rows and element in the interaction.
  double operations() const;
  std::span<const float> parameters() const { return trainer_->parameters(); }
  train::StageClock& clock() { return trainer_->stages().clock(); }

 private:
  TrainWorkload(std::vector<train::RankBatch>& batches, Communicator& communicator)
      : batches_(batches), communicator_(communicator) {}
  void describe(const TrainShape& shape);
  void make_optimizer();
  Status write_initial_rows(ThreadPool& pool);
  struct Ahead {  // of a batch
    std::unique_ptr<store::Prepared> prepared;
    std::unique_ptr<train::SentInputs> sent;
  };
  Result<Ahead> prepare(int64_t batch, int64_t iteration);
  Result<double> step(int64_t batch, Ahead ahead);

  std::vector<train::RankBatch>& batches_;
  ModelSpec spec_;
  model::ModelOptions options_;
  train::DenseOptimizerOptions optimizer_;
  Communicator& communicator_;
  std::unique_ptr<store::EmbeddingStore> store_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<model::GpuLayers> layers_;  // null: on the CPU
  std::unique_ptr<train::DenseOptimizer> dense_optimizer_;
  std::unique_ptr<train::Trainer> trainer_;
  int64_t iteration_ = 0;
};

}  // namespace recmill::bench
