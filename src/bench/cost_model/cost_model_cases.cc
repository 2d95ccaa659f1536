// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/cost_model_cases.h"

#include <fmt/format.h>

#include "bench/placed/placed_shape.h"

namespace recmill::bench {
namespace {

using Kind = placement::PlannerKind;

constexpr bool kTraining = true, kInference = false, kDedup = true, kEachLookup = false;

CostModelWork kaggle(int64_t dim, double zipf, bool training) {
  return {"kaggle", dim, zipf, training, kRankSamples, kTimedSeed};
}

}  // namespace

std::string CostModelWork::name() const {
  return fmt::format("{}_d{}_zipf{}_{}", shape, dim, zipf, training ? "training" : "inference");
}

std::string CostModelCase::name() const {
  std::string name =
      fmt::format("{}_{}_{}", work.name(), dedup ? "dedup" : "nodedup", recmill::name_of(planner));
  if (planner == Kind::oper) name += fmt::format("_{:g}pct", 100 * extra_memory);
  return name;
}

std::vector<CostModelCase> fitted_cases() {
  const CostModelWork avazu_training{"avazu", 32, 1.1, kTraining, 3072, 11};
  const CostModelWork avazu_inference{"avazu", 48, 1.15, kInference, 6144, 12};
  const CostModelWork terabyte_training{"terabyte", 32, 1.15, kTraining, 5120, 13};
  const CostModelWork terabyte_inference{"terabyte", 48, 1.1, kInference, 2560, 14};
  return {{avazu_training, Kind::table_wise, kDedup},
          {avazu_training, Kind::oper, kEachLookup, 0.02},
          {avazu_inference, Kind::row_wise, kEachLookup},
          {avazu_inference, Kind::oper, kDedup, 0.1},
          {terabyte_training, Kind::column_wise, kDedup},
          {terabyte_training, Kind::access_greedy, kEachLookup},
          {terabyte_inference, Kind::torchrec_like, kEachLookup},
          {terabyte_inference, Kind::memory_greedy, kDedup}};
}

std::vector<CostModelCase> judged_cases() {
  return {{kaggle(64, 1.2, kTraining), Kind::table_wise, kDedup},
          {kaggle(64, 1.2, kTraining), Kind::row_wise, kEachLookup},
          {kaggle(64, 1.2, kTraining), Kind::torchrec_like, kDedup},
          {kaggle(64, 1.2, kTraining), Kind::oper, kDedup, 0.05},
          {kaggle(64, 1.2, kTraining), Kind::oper, kEachLookup, 0.05},
          {kaggle(64, 1.2, kInference), Kind::oper, kEachLookup, 0.01},
          {kaggle(64, 1.2, kInference), Kind::table_wise, kEachLookup},
          {kaggle(64, 1.2, kInference), Kind::oper, kDedup, 0.5},
          {kaggle(16, 1.2, kTraining), Kind::data_parallel, kDedup},
          {kaggle(16, 1.2, kTraining), Kind::row_wise, kDedup},
          {kaggle(16, 1.2, kTraining), Kind::oper, kDedup, 0},
          {kaggle(16, 1.2, kInference), Kind::access_greedy, kDedup},
          {kaggle(16, 1.2, kInference), Kind::table_row_wise, kDedup},
          {kaggle(64, 1.05, kTraining), Kind::column_wise, kDedup},
          {kaggle(64, 1.05, kTraining), Kind::memory_greedy, kDedup},
          {kaggle(64, 1.05, kInference), Kind::access_greedy, kEachLookup},
          {kaggle(64, 1.05, kInference), Kind::torchrec_like, kDedup},
          {kaggle(64, 1.05, kInference), Kind::oper, kEachLookup, 0},
          {kaggle(16, 1.05, kTraining), Kind::oper, kEachLookup, 0.5},
          {kaggle(16, 1.05, kTraining), Kind::memory_greedy, kEachLookup}};
}

}  // namespace recmill::bench
