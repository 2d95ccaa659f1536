// SPDX-License-Identifier: Apache-2.0
// Ways to place rows. Each is a pure function: the same problem, the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "placement/oper/partition.h"
#include "placement/problem.h"
#include "placement_plan/placement_plan.h"
#include "schema/options.h"

namespace recmill::placement {

enum class PlannerKind {
  table_wise,
  row_wise,
  column_wise,
  table_row_wise,
  data_parallel,
  memory_greedy,
  access_greedy,
  torchrec_like,
  oper,
  hot_cold,
  milp
};

/// Whether a planner looks at counts of accesses, rather than at tables and memory alone.
bool goes_by_counts(PlannerKind kind);

struct PlannerOptions {
  Thresholds thresholds;
  /// Memory for copies, as a share of one copy of every row.
  double extra_memory = 0.05;
  /// Degree of balance of lookups and memory that OPER refines its partitions for.
  double balance = 0.99;
  /// Times that it may halve its thresholds.
  int64_t refinements = 4;
  /// Of the MILP: branch-and-bound nodes, and iterations of the simplex method.
  int64_t milp_nodes = 1000, milp_iterations = 20'000;
};

struct Proposal {
  PlacementPlan plan;
  int64_t partitions = 0;
  /// Shares of the access-bounded partitions in all fetches and in all memory; 0: not partitioned
  /// so.
  double access_bounded_share = 0, access_bounded_memory = 0;
  std::vector<std::string> notes;  // a line each, for people
};

/// Errors are bad requests: rows do not fit, and by how much; or the planner is none for the
/// problem.
Result<Proposal> plan_placement(const Problem& problem, PlannerKind kind,
                                const PlannerOptions& options);

// One function a planner.
Result<Proposal> plan_table_wise(const Problem& problem);
Result<Proposal> plan_row_wise(const Problem& problem);
Result<Proposal> plan_column_wise(const Problem& problem);
Result<Proposal> plan_table_row_wise(const Problem& problem);
Result<Proposal> plan_data_parallel(const Problem& problem);
Result<Proposal> plan_memory_greedy(const Problem& problem);
Result<Proposal> plan_access_greedy(const Problem& problem, const PlannerOptions& options);
Result<Proposal> plan_torchrec_like(const Problem& problem);
Result<Proposal> plan_oper(const Problem& problem, const PlannerOptions& options);
/// Copies of the problem's hot set everywhere, the others as OPER places them.
Result<Proposal> plan_hot_cold(const Problem& problem, const PlannerOptions& options);
Result<Proposal> plan_milp(const Problem& problem, const PlannerOptions& options);

}  // namespace recmill::placement

namespace recmill {
template <>
struct EnumNames<placement::PlannerKind> {
  using Kind = placement::PlannerKind;
  static constexpr std::array names{
      std::pair{Kind::table_wise, std::string_view{"table_wise"}},
      std::pair{Kind::row_wise, std::string_view{"row_wise"}},
      std::pair{Kind::column_wise, std::string_view{"column_wise"}},
      std::pair{Kind::table_row_wise, std::string_view{"table_row_wise"}},
      std::pair{Kind::data_parallel, std::string_view{"data_parallel"}},
      std::pair{Kind::memory_greedy, std::string_view{"memory_greedy"}},
      std::pair{Kind::access_greedy, std::string_view{"access_greedy"}},
      std::pair{Kind::torchrec_like, std::string_view{"torchrec_like"}},
      std::pair{Kind::oper, std::string_view{"oper"}},
      std::pair{Kind::hot_cold, std::string_view{"hot_cold"}},
      std::pair{Kind::milp, std::string_view{"milp"}}};
};
}  // namespace recmill
