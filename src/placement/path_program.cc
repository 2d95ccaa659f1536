// SPDX-License-Identifier: Apache-2.0
#include "placement/path_program.h"

#include <algorithm>
#include <cmath>

#include "placement/time_program.h"

namespace recmill::placement {
namespace {

using solve::Entry;
using solve::kInfinity;

class PathProgram {
 public:
  PathProgram(const Problem& problem, std::span<const Load> loads, std::span<const double> budgets,
              bool copies, bool integer)
      : problem_(problem),
        loads_(loads),
        devices_(problem.devices()),
        copies_(copies),
        time_(problem, unit(problem, loads)) {
    for (const Load& load : loads) copies ? add_copied(load, integer) : add_single(load, integer);
    counted_ = copies && integer;
    if (counted_) add_counts(budgets);
    time_.finish(DeviceCosts(problem));
    for (int d = 0; d < devices_; ++d) {
      std::vector<Entry> memory;
      for (size_t p = 0; p < loads.size(); ++p)
        if (loads[p].memory / budgets[d] > 1e-9)
          memory.push_back({held(p, d), loads[p].memory / budgets[d]});
      if (!memory.empty()) time_.program().add_row(-kInfinity, 1.0, std::move(memory));
    }
  }

  const solve::MixedIntegerProgram& program() { return time_.program(); }
  double unit() const { return time_.unit(); }

  std::vector<double> values_of(std::span<const FetchPath> paths) {
    if (paths.empty()) return {};
    std::vector<double> values(program().columns().size());
    DeviceCosts costs(problem_);
    for (size_t p = 0; p < paths.size(); ++p) {
      costs.add(loads_[p], paths[p]);
      for (int d = 0; d < devices_; ++d) {
        values[held(p, d)] = paths[p].has_copy(d) ? 1 : 0;
        for (int from = 0; from < devices_ && copies_; ++from)
          values[fetched(p, d, from)] = paths[p].from[d] == from ? 1 : 0;
      }
      if (counted_) values[count(p)] = paths[p].copies();
    }
    values[time_.time()] = costs.largest_seconds() / unit();
    return values;
  }

  // Where a load is held by half or more, and at least where it is held the most.
  std::vector<FetchPath> paths_of(const std::vector<double>& values) const {
    std::vector<FetchPath> paths;
    for (size_t p = 0; p < loads_.size(); ++p) {
      int home = 0;
      for (int d = 1; d < devices_; ++d)
        if (values[held(p, d)] > values[held(p, home)] + 1e-9) home = d;
      FetchPath path = FetchPath::at(home, devices_);
      for (int d = 0; d < devices_ && copies_; ++d)
        if (values[held(p, d)] >= 0.5) path.from[d] = d;
      for (int d = 0; d < devices_ && copies_; ++d)
        if (!path.has_copy(d)) path.from[d] = largest_source(values, p, d, path);
      paths.push_back(std::move(path));
    }
    return paths;
  }

 private:
  static double unit(const Problem& problem, std::span<const Load> loads) {
    DeviceCosts costs(problem);
    Load all;
    for (const Load& load : loads) all += load;
    for (int d = 0; d < problem.devices(); ++d)
      costs.add(all * (1.0 / problem.devices()), FetchPath::at(d, problem.devices()));
    return std::max(costs.largest_seconds(), 1e-300);
  }

  // Columns of load p: held by d, and with copies then fetched by d from each device.
  int64_t stride() const { return devices_ + (copies_ ? devices_ * devices_ : 0); }
  int64_t held(size_t p, int d) const { return first_ + static_cast<int64_t>(p) * stride() + d; }
  int64_t fetched(size_t p, int d, int from) const {
    return held(p, 0) + devices_ + d * devices_ + from;
  }

  int64_t count(size_t p) const { return held(loads_.size(), 0) + static_cast<int64_t>(p); }

  // How many devices hold each load. It follows from the rest, but bounds rise sooner with it.
  void add_counts(std::span<const double> budgets) {
    solve::MixedIntegerProgram& program = time_.program();
    double all = 0, spare = 0;
    for (const Load& load : loads_) all += load.memory;
    for (const double budget : budgets) spare += budget;
    spare = std::max(spare - all, 0.0);
    std::vector<Entry> memory;
    for (size_t p = 0; p < loads_.size(); ++p) {
      const bool is_free = spare >= (devices_ - 1) * loads_[p].memory;
      const double most = is_free ? devices_ : 1 + std::floor(spare / loads_[p].memory + 1e-9);
      const int64_t column = program.add_column(0.0, 1.0, most, true);
      std::vector<Entry> holders{{column, -1.0}};
      for (int d = 0; d < devices_; ++d) holders.push_back({held(p, d), 1.0});
      program.add_row(0.0, 0.0, std::move(holders));
      if (loads_[p].memory / (all + spare) > 1e-9)
        memory.push_back({column, loads_[p].memory / (all + spare)});
    }
    if (!memory.empty()) program.add_row(-kInfinity, 1.0, std::move(memory));
  }

  void add_single(const Load& load, bool integer) {
    std::vector<Entry> one;
    for (int d = 0; d < devices_; ++d) {
      const int64_t column = time_.program().add_column(0.0, 0.0, 1.0, integer);
      DeviceCosts costs(problem_);
      costs.add(load, FetchPath::at(d, devices_));
      time_.add(column, costs);
      one.push_back({column, 1.0});
    }
    time_.program().add_row(1.0, 1.0, std::move(one));
  }

  void add_copied(const Load& load, bool integer) {
    solve::MixedIntegerProgram& program = time_.program();
    const auto first = static_cast<int64_t>(program.columns().size());
    for (int d = 0; d < devices_; ++d) program.add_column(0.0, 0.0, 1.0, integer);
    for (int to = 0; to < devices_; ++to) {
      std::vector<Entry> one;
      for (int from = 0; from < devices_; ++from) {
        // Whole in what is solved for, since a path is no share.
        const int64_t column = program.add_column(0.0, 0.0, 1.0, integer);
        time_.add_fetch(column, load, to, from);
        program.add_row(-kInfinity, 0.0, {{column, 1.0}, {first + from, -1.0}});
        one.push_back({column, 1.0});
      }
      program.add_row(1.0, 1.0, std::move(one));
    }
  }

  int largest_source(const std::vector<double>& values, size_t p, int d,
                     const FetchPath& path) const {
    int best = path.home;
    for (int from = 0; from < devices_; ++from)
      if (path.has_copy(from) && values[fetched(p, d, from)] > values[fetched(p, d, best)] + 1e-9)
        best = from;
    return best;
  }

  const Problem& problem_;
  std::span<const Load> loads_;
  const int devices_;
  const bool copies_;
  bool counted_ = false;
  TimeProgram time_;
  const int64_t first_ = 1;  // after the time's column
};

}  // namespace

Result<PathSolution> solve_paths(const Problem& problem, std::span<const Load> loads,
                                 std::span<const double> budgets, bool copies,
                                 const solve::Limits& limits, std::span<const FetchPath> start) {
  RECMILL_CHECK(!copies || !problem.training);
  PathProgram program(problem, loads, budgets, copies, true);
  RECMILL_ASSIGN_OR_RETURN(const solve::Solution solution,
                           solve::solve(program.program(), limits, program.values_of(start)));
  if (solution.outcome == solve::Outcome::infeasible)
    return Status::BadRequest("partitions do not fit the devices, in whatever way");
  PathSolution result;
  result.bound = solution.dual_bound * program.unit();
  if (!solution.has_values()) return result;
  result.seconds = solution.objective * program.unit();
  result.paths = program.paths_of(solution.values);
  return result;
}

Result<CutSolution> solve_by_cutting(const Problem& problem, std::span<const Load> loads,
                                     std::span<const double> budgets, bool copies) {
  RECMILL_CHECK(!copies || !problem.training);
  PathProgram program(problem, loads, budgets, copies, false);
  RECMILL_ASSIGN_OR_RETURN(const solve::Solution solution, solve::solve(program.program()));
  if (solution.outcome != solve::Outcome::optimal)
    return Status::BadRequest("rows do not fit the devices, in whatever way");
  return CutSolution{solution.objective * program.unit(), program.paths_of(solution.values)};
}

}  // namespace recmill::placement
