// SPDX-License-Identifier: Apache-2.0
// What `bench cost_model` runs: plans that the cost model's constants are fitted on, and others
// that it is judged by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/placement/frozen_shapes.h"
#include "placement/planners.h"

namespace recmill::bench {

/// What rows are looked up, and how often: of cases that are alike in it the same bits.
struct CostModelWork {
  std::string shape;  // of frozen_shapes()
  int64_t dim = 64;
  double zipf = 1.2;
  bool training = true;
  int64_t samples = 4096;  // of a rank in each batch
  uint64_t seed = 1;       // of the samples; counts are of others

  std::string name() const;  // "kaggle_d64_zipf1.2_training"
  bool operator==(const CostModelWork&) const = default;
};

struct CostModelCase {
  CostModelWork work;
  placement::PlannerKind planner = placement::PlannerKind::oper;
  bool dedup = true;
  double extra_memory = placement::PlannerOptions().extra_memory;

  std::string name() const;  // that of the work, then "_dedup_oper_5pct"
};

/// Other tables, dimensions, batches and laws than in judged_cases().
std::vector<CostModelCase> fitted_cases();
std::vector<CostModelCase> judged_cases();

}  // namespace recmill::bench
