// SPDX-License-Identifier: Apache-2.0
#include "placement/planners.h"

#include "placement/oper/choose_pooling.h"

namespace recmill::placement {

bool goes_by_counts(PlannerKind kind) {
  switch (kind) {
    case PlannerKind::table_wise:
    case PlannerKind::row_wise:
    case PlannerKind::column_wise:
    case PlannerKind::table_row_wise:
    case PlannerKind::data_parallel:
    case PlannerKind::memory_greedy:
      return false;
    case PlannerKind::access_greedy:
    case PlannerKind::torchrec_like:
    case PlannerKind::oper:
    case PlannerKind::hot_cold:
    case PlannerKind::milp:
      break;
  }
  return true;
}

namespace {

Result<Proposal> plan_rows(const Problem& problem, PlannerKind kind,
                           const PlannerOptions& options) {
  switch (kind) {
    case PlannerKind::table_wise:
      return plan_table_wise(problem);
    case PlannerKind::row_wise:
      return plan_row_wise(problem);
    case PlannerKind::column_wise:
      return plan_column_wise(problem);
    case PlannerKind::table_row_wise:
      return plan_table_row_wise(problem);
    case PlannerKind::data_parallel:
      return plan_data_parallel(problem);
    case PlannerKind::memory_greedy:
      return plan_memory_greedy(problem);
    case PlannerKind::access_greedy:
      return plan_access_greedy(problem, options);
    case PlannerKind::torchrec_like:
      return plan_torchrec_like(problem);
    case PlannerKind::oper:
      return plan_oper(problem, options);
    case PlannerKind::hot_cold:
      return plan_hot_cold(problem, options);
    case PlannerKind::milp:
      return plan_milp(problem, options);
  }
  return Status::BadRequest("no such planner");
}

}  // namespace

Result<Proposal> plan_placement(const Problem& problem, PlannerKind kind,
                                const PlannerOptions& options) {
  RECMILL_RETURN_IF_ERROR(check_problem(problem));
  RECMILL_ASSIGN_OR_RETURN(Proposal proposal, plan_rows(problem, kind, options));
  if (!problem.deterministic) choose_pooling(problem, proposal);
  return proposal;
}

}  // namespace recmill::placement
