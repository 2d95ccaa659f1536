// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "bench/placement/frozen_shapes.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "model/model.h"
#include "placement_plan/placement_plan.h"
#include "step/optimizer/dense_optimizer.h"
#include "step/rank_trainer.h"
#include "store/placed/placed_store.h"

namespace recmill::bench {

/// A DLRM 512-256-64-d and 512-256-1 on ranks whose rows, of d columns, are stored as a plan says.
class PlacedModel {
 public:
  static constexpr int kSlices = 8;

  static Result<std::unique_ptr<PlacedModel>> make(ModelSpec spec, const PlacementPlan& plan,
                                                   store::ShardedOptions options, Communicator& all,
                                                   ThreadPool& pool);
  /// This rank's samples of `batches` batches.
  static std::vector<train::RankBatch> draw(const ShapeDraw& draw, int64_t batches,
                                            store::Purpose purpose, Communicator& all,
                                            ThreadPool& pool);

  /// The sum of losses over the global batch.
  Result<double> go(train::RankBatch& batch);

 private:
  explicit PlacedModel(ModelSpec spec) : spec_(std::move(spec)) {}

  const ModelSpec spec_;
  std::unique_ptr<store::PlacedStore> store_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<train::DenseOptimizer> dense_optimizer_;
  std::unique_ptr<train::RankTrainer> trainer_;
  int64_t iteration_ = 0;
};

}  // namespace recmill::bench
