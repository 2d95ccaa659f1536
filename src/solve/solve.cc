// SPDX-License-Identifier: Apache-2.0
#include "solve/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "solve/highs_c_api.h"

namespace recmill::solve {
namespace {

constexpr int64_t kMostOfHighs = std::numeric_limits<HighsInt>::max();

struct Destroy {
  void operator()(void* highs) const { Highs_destroy(highs); }
};
using Highs = std::unique_ptr<void, Destroy>;

Status check_limits(const Limits& limits) {
  if (limits.nodes < 0 || limits.iterations < 0)
    return Status::Failed(fmt::format("limits: {} nodes and {} iterations; none may be negative",
                                      limits.nodes, limits.iterations));
  if (!(limits.relative_gap >= 0.0) || !(limits.seconds >= 0.0))
    return Status::Failed(
        fmt::format("limits: a relative gap of {} and {} seconds; none may be negative",
                    limits.relative_gap, limits.seconds));
  return {};
}

Status check_start(const MixedIntegerProgram& program, std::span<const double> start) {
  if (start.empty()) return {};
  if (start.size() != program.columns().size())
    return Status::Failed(
        fmt::format("start: {} values for {} columns", start.size(), program.columns().size()));
  const auto wrong = std::ranges::find_if_not(start, [](double x) { return std::isfinite(x); });
  if (wrong != start.end())
    return Status::Failed(fmt::format("start: column {} is {}", wrong - start.begin(), *wrong));
  return {};
}

HighsInt clamp_limit(int64_t limit) {
  return static_cast<HighsInt>(limit == 0 ? kMostOfHighs : std::min(limit, kMostOfHighs));
}

Status set_options(void* highs, const Limits& limits) {
  // Seed 0 is the one that HiGHS is tested with. Gaps of 0 prove the optimum to its tolerance.
  const HighsInt results[] = {
      Highs_setBoolOptionValue(highs, "output_flag", 0),
      Highs_setIntOptionValue(highs, "threads", 1),
      Highs_setStringOptionValue(highs, "parallel", "off"),
      Highs_setIntOptionValue(highs, "random_seed", 0),
      Highs_setDoubleOptionValue(highs, "mip_abs_gap", 0.0),
      Highs_setDoubleOptionValue(highs, "mip_rel_gap", limits.relative_gap),
      Highs_setDoubleOptionValue(highs, "mip_feasibility_tolerance", kTolerance),
      Highs_setIntOptionValue(highs, "mip_max_nodes", clamp_limit(limits.nodes)),
      Highs_setIntOptionValue(highs, "simplex_iteration_limit", clamp_limit(limits.iterations)),
      Highs_setDoubleOptionValue(highs, "time_limit",
                                 limits.seconds == 0.0 ? kInfinity : limits.seconds)};
  for (const HighsInt result : results) {
    if (result != kHighsOk) return Status::Failed("HiGHS does not know an option of its own");
  }
  return {};
}

/// A program in the arrays that HiGHS takes.
struct Arrays {
  explicit Arrays(const MixedIntegerProgram& program) {
    for (const Column& column : program.columns()) {
      cost.push_back(column.cost);
      lower.push_back(column.lower);
      upper.push_back(column.upper);
      integrality.push_back(column.integer ? kHighsInteger : kHighsContinuous);
    }
    for (const Row& row : program.rows()) {
      row_lower.push_back(row.lower);
      row_upper.push_back(row.upper);
      row_start.push_back(static_cast<HighsInt>(entry_value.size()));
      for (const Entry& entry : row.entries) {
        if (entry.value == 0.0) continue;
        entry_column.push_back(static_cast<HighsInt>(entry.column));
        entry_value.push_back(entry.value);
      }
    }
  }

  std::vector<double> cost, lower, upper, row_lower, row_upper, entry_value;
  std::vector<HighsInt> integrality, row_start, entry_column;
};

Status pass(void* highs, const MixedIntegerProgram& program) {
  const Arrays arrays(program);
  const int64_t largest =
      std::max({arrays.cost.size(), arrays.row_start.size(), arrays.entry_value.size()});
  if (largest > kMostOfHighs)
    return Status::Failed(fmt::format("{} columns, {} rows and {} entries; HiGHS takes {} of each",
                                      arrays.cost.size(), arrays.row_start.size(),
                                      arrays.entry_value.size(), kMostOfHighs));
  const HighsInt result = Highs_passMip(
      highs, arrays.cost.size(), arrays.row_start.size(), arrays.entry_value.size(), kHighsRowWise,
      kHighsMinimize, 0.0, arrays.cost.data(), arrays.lower.data(), arrays.upper.data(),
      arrays.row_lower.data(), arrays.row_upper.data(), arrays.row_start.data(),
      arrays.entry_column.data(), arrays.entry_value.data(), arrays.integrality.data());
  if (result != kHighsOk) return Status::Failed("HiGHS does not take the program");
  return {};
}

/// HiGHS itself limits the iterations of a linear program alone, not those of a search.
void interrupt_search(int, const char*, const HighsCallbackDataOut* out, HighsCallbackDataIn* in,
                      void* data) {
  const void* done = Highs_getCallbackDataOutItem(out, "mip_total_lp_iterations");
  const auto limit = *static_cast<const int64_t*>(data);
  if (done && *static_cast<const int64_t*>(done) >= limit) in->user_interrupt = 1;
}

Status limit_search(void* highs, const int64_t& iterations) {
  if (Highs_setCallback(highs, interrupt_search, const_cast<int64_t*>(&iterations)) != kHighsOk ||
      Highs_startCallback(highs, kHighsMipInterrupt) != kHighsOk)
    return Status::Failed("HiGHS does not take a limit of iterations");
  return {};
}

/// Integer columns at whole numbers, and all within their bounds: HiGHS is off by its tolerance.
std::vector<double> whole_values(const MixedIntegerProgram& program, std::vector<double> values) {
  for (size_t c = 0; c < values.size(); ++c) {
    const Column& column = program.columns()[c];
    if (column.integer) values[c] = std::round(values[c]);
    values[c] = std::clamp(values[c], column.lower, column.upper) + 0.0;  // no -0
  }
  return values;
}

MixedIntegerProgram without_costs(const MixedIntegerProgram& program) {
  MixedIntegerProgram free;
  for (const Column& column : program.columns())
    free.add_column(0.0, column.lower, column.upper, column.integer);
  for (const Row& row : program.rows()) free.add_row(row.lower, row.upper, row.entries);
  return free;
}

/// `solution` with the values that HiGHS found, which must hold when they are whole. Where a limit
/// broke off a linear program they may not.
Result<Solution> with_values(const MixedIntegerProgram& program, Solution solution,
                             std::vector<double> found) {
  std::vector<double> values = whole_values(program, std::move(found));
  const Status checked = program.check_values(values);
  if (!checked.ok() && (program.has_integers() || solution.outcome == Outcome::optimal))
    return checked.at("HiGHS found what is no solution");
  if (!checked.ok()) {
    solution.outcome = Outcome::limit_reached_without;
    return solution;
  }
  solution.objective = program.objective(values);
  solution.dual_bound = std::min(solution.dual_bound, solution.objective);
  solution.values = std::move(values);
  return solution;
}

/// HiGHS says that there is no least objective, or no solution at all. Which one?
Result<Solution> unbounded_or_infeasible(const MixedIntegerProgram& program, const Limits& limits,
                                         Solution solution) {
  if (std::ranges::all_of(program.columns(), [](const Column& c) { return c.cost == 0.0; }))
    return Status::Failed("HiGHS calls a program without costs unbounded");
  RECMILL_ASSIGN_OR_RETURN(const auto any, solve(without_costs(program), limits));
  solution.nodes += any.nodes;
  solution.iterations += any.iterations;
  solution.outcome = any.has_values() ? Outcome::unbounded : any.outcome;
  solution.objective = any.has_values() ? -kInfinity : kInfinity;
  solution.dual_bound = any.outcome == Outcome::infeasible ? kInfinity : -kInfinity;
  return solution;
}

Solution counts_of(const void* highs, bool search) {
  Solution solution;
  HighsInt iterations = 0;
  Highs_getIntInfoValue(highs, "simplex_iteration_count", &iterations);
  solution.iterations = std::max(0, iterations);
  if (search) {
    Highs_getInt64InfoValue(highs, "mip_node_count", &solution.nodes);
    Highs_getDoubleInfoValue(highs, "mip_dual_bound", &solution.dual_bound);
  }
  return solution;
}

Result<Solution> read_answer(const void* highs, const MixedIntegerProgram& program,
                             const Limits& limits) {
  Solution solution = counts_of(highs, program.has_integers());
  const HighsInt status = Highs_getModelStatus(highs);
  switch (status) {
    case kHighsInfeasible:
      solution.outcome = Outcome::infeasible;
      solution.dual_bound = kInfinity;
      return solution;
    case kHighsUnbounded:
    case kHighsUnboundedOrInfeasible:
      return unbounded_or_infeasible(program, limits, std::move(solution));
    case kHighsOptimal:
      solution.outcome = Outcome::optimal;
      if (!program.has_integers()) solution.dual_bound = kInfinity;  // the objective, once known
      break;
    case kHighsTimeLimit:
    case kHighsIterationLimit:
    case kHighsSolutionLimit:
    case kHighsInterrupt: {
      HighsInt primal = 0;
      Highs_getIntInfoValue(highs, "primal_solution_status", &primal);
      solution.outcome = primal == kHighsFeasible ? Outcome::limit_reached_with_solution
                                                  : Outcome::limit_reached_without;
      if (!solution.has_values()) return solution;
      break;
    }
    default:
      return Status::Failed(fmt::format("HiGHS ends with model status {}", status));
  }
  std::vector<double> found(program.columns().size());
  if (Highs_getSolution(highs, found.data(), nullptr, nullptr, nullptr) != kHighsOk)
    return Status::Failed("HiGHS does not give its solution");
  return with_values(program, std::move(solution), std::move(found));
}

/// Nothing is to be chosen: each row is 0.
Solution without_columns(const MixedIntegerProgram& program) {
  if (!program.check_values({}).ok()) return {Outcome::infeasible, {}, kInfinity, kInfinity};
  return {Outcome::optimal, {}, 0.0, 0.0};
}

}  // namespace

Result<Solution> solve(const MixedIntegerProgram& program, const Limits& limits,
                       std::span<const double> start) {
  RECMILL_RETURN_IF_ERROR(program.check());
  RECMILL_RETURN_IF_ERROR(check_limits(limits));
  RECMILL_RETURN_IF_ERROR(check_start(program, start));
  if (program.columns().empty()) return without_columns(program);
  const Highs highs(Highs_create());
  RECMILL_RETURN_IF_ERROR(set_options(highs.get(), limits));
  RECMILL_RETURN_IF_ERROR(pass(highs.get(), program));
  if (program.has_integers() && limits.iterations > 0)
    RECMILL_RETURN_IF_ERROR(limit_search(highs.get(), limits.iterations));
  if (program.has_integers() && !start.empty() &&
      Highs_setSolution(highs.get(), start.data(), nullptr, nullptr, nullptr) != kHighsOk)
    return Status::Failed("HiGHS does not take the start");
  if (Highs_run(highs.get()) == kHighsError) return Status::Failed("HiGHS fails");
  return read_answer(highs.get(), program, limits);
}

}  // namespace recmill::solve
