// SPDX-License-Identifier: Apache-2.0
#include "placement/few/path_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "placement/few/time_program.h"

namespace recmill::placement {
namespace {

using solve::Entry;
using solve::kInfinity;

constexpr double kAlike = 0.01;
constexpr double kLargeShare = 0.1;  // of a device's memory

/// How many loads there are of a kind.
struct CountedLoad {
  Load load;
  int64_t count = 1;
};

std::vector<CountedLoad> each_counted(std::span<const Load> loads) {
  std::vector<CountedLoad> counted;
  for (const Load& load : loads) counted.push_back({load, 1});
  return counted;
}

class PathProgram {
 public:
  PathProgram(const Problem& problem, std::vector<CountedLoad> loads,
              std::span<const double> budgets, bool copies, bool integer)
      : problem_(problem),
        loads_(std::move(loads)),
        devices_(problem.devices()),
        copies_(copies),
        time_(problem, unit(problem, loads_)) {
    for (const CountedLoad& load : loads_)
      copies ? add_copied(load, integer) : add_single(load, integer);
    counted_ = copies && integer;
    if (counted_) add_counts(budgets);
    time_.finish(DeviceCosts(problem));
    for (int d = 0; d < devices_; ++d) {
      std::vector<Entry> memory;
      for (size_t p = 0; p < loads_.size(); ++p)
        if (loads_[p].load.memory / budgets[d] > 1e-9)
          memory.push_back({held(p, d), loads_[p].load.memory / budgets[d]});
      if (!memory.empty()) time_.program().add_row(-kInfinity, 1.0, std::move(memory));
    }
  }

  const solve::MixedIntegerProgram& program() { return time_.program(); }
  double unit() const { return time_.unit(); }

  // No device takes longer.
  void limit_time(double seconds) {
    time_.program().add_row(-kInfinity, seconds / unit(), {{time_.time(), 1.0}});
  }

  // Of devices that are all alike, the first holds the most of the largest loads.
  void order_devices(std::span<const double> budgets) {
    for (int d = 0; d + 1 < devices_; ++d) {
      std::vector<Entry> more;
      for (size_t p = 0; p < loads_.size(); ++p) {
        const double share = loads_[p].load.memory / budgets[d];
        if (share < kLargeShare) continue;
        more.push_back({held(p, d), share});
        more.push_back({held(p, d + 1), -share});
      }
      if (!more.empty()) time_.program().add_row(0.0, kInfinity, std::move(more));
    }
  }

  // Of loads one of a kind.
  std::vector<double> values_of(std::span<const FetchPath> paths) {
    if (paths.empty()) return {};
    std::vector<double> values(program().columns().size());
    DeviceCosts costs(problem_);
    for (size_t p = 0; p < paths.size(); ++p) {
      costs.add(loads_[p].load, paths[p]);
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

  // Of loads one of a kind: where one is held by half or more, and at least where the most.
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
  static double unit(const Problem& problem, std::span<const CountedLoad> loads) {
    DeviceCosts costs(problem);
    Load all;
    for (const auto& [load, count] : loads) all += load * static_cast<double>(count);
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

  // How many copies there are of each kind. It follows from the rest, but bounds rise sooner with
  // it.
  void add_counts(std::span<const double> budgets) {
    solve::MixedIntegerProgram& program = time_.program();
    double all = 0, room = 0;
    for (const auto& [load, count] : loads_) all += load.memory * static_cast<double>(count);
    for (const double budget : budgets) room += budget;
    room = std::max(room, all);
    std::vector<Entry> memory;
    for (size_t p = 0; p < loads_.size(); ++p) {
      const auto& [load, loads] = loads_[p];
      const auto least = static_cast<double>(loads), everywhere = least * devices_;
      const bool is_free = room - all >= (everywhere - least) * load.memory;
      const double most =
          is_free ? everywhere : least + std::floor((room - all) / load.memory + 1e-9);
      const int64_t column = program.add_column(0.0, least, std::min(most, everywhere), true);
      std::vector<Entry> holders{{column, -1.0}};
      for (int d = 0; d < devices_; ++d) holders.push_back({held(p, d), 1.0});
      program.add_row(0.0, 0.0, std::move(holders));
      if (load.memory / room > 1e-9) memory.push_back({column, load.memory / room});
    }
    if (!memory.empty()) program.add_row(-kInfinity, 1.0, std::move(memory));
  }

  void add_single(const CountedLoad& of, bool integer) {
    const auto count = static_cast<double>(of.count);
    std::vector<Entry> one;
    for (int d = 0; d < devices_; ++d) {
      const int64_t column = time_.program().add_column(0.0, 0.0, count, integer);
      DeviceCosts costs(problem_);
      costs.add(of.load, FetchPath::at(d, devices_));
      time_.add(column, costs);
      one.push_back({column, 1.0});
    }
    time_.program().add_row(count, count, std::move(one));
  }

  void add_copied(const CountedLoad& of, bool integer) {
    solve::MixedIntegerProgram& program = time_.program();
    const auto count = static_cast<double>(of.count);
    const auto first = static_cast<int64_t>(program.columns().size());
    for (int d = 0; d < devices_; ++d) program.add_column(0.0, 0.0, count, integer);
    for (int to = 0; to < devices_; ++to) {
      std::vector<Entry> one;
      for (int from = 0; from < devices_; ++from) {
        // Whole in what is solved for, since a path is no share.
        const int64_t column = program.add_column(0.0, 0.0, count, integer);
        time_.add_fetch(column, of.load, to, from);
        program.add_row(-kInfinity, 0.0, {{column, 1.0}, {first + from, -1.0}});
        one.push_back({column, 1.0});
      }
      program.add_row(count, count, std::move(one));
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
  const std::vector<CountedLoad> loads_;
  const int devices_;
  const bool copies_;
  bool counted_ = false;
  TimeProgram time_;
  const int64_t first_ = 1;  // after the time's column
};

constexpr double Load::*kUses[] = {&Load::memory, &Load::looked_up, &Load::fetched,
                                   &Load::requested};  // of inference

Load least_of(Load a, const Load& b) {
  for (const auto use : kUses) a.*use = std::min(a.*use, b.*use);
  return a;
}
Load most_of(Load a, const Load& b) {
  for (const auto use : kUses) a.*use = std::max(a.*use, b.*use);
  return a;
}
bool is_alike(const Load& least, const Load& most) {
  return std::ranges::all_of(
      kUses, [&](const auto use) { return most.*use <= least.*use * (1 + kAlike); });
}

/// Loads that are alike within kAlike, each as if it took as little as the least of its kind.
std::vector<CountedLoad> join_alike(std::span<const Load> loads) {
  std::vector<size_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t p) { return loads[p].memory; });
  std::vector<CountedLoad> kinds;
  std::vector<Load> most;  // [kinds]
  for (const size_t p : order) {
    const Load& load = loads[p];
    size_t kind = 0;
    while (kind < kinds.size() &&
           !is_alike(least_of(kinds[kind].load, load), most_of(most[kind], load)))
      ++kind;
    if (kind == kinds.size()) {
      kinds.push_back({load, 1});
      most.push_back(load);
    } else {
      kinds[kind] = {least_of(kinds[kind].load, load), kinds[kind].count + 1};
      most[kind] = most_of(most[kind], load);
    }
  }
  return kinds;
}

bool are_interchangeable(const ClusterSpec& cluster, std::span<const double> budgets) {
  const int devices = static_cast<int>(budgets.size());
  for (int to = 0; to < devices; ++to) {
    if (budgets[to] != budgets[0]) return false;
    for (int from = 0; from < devices; ++from) {
      const LinkSpec& same = cluster.link(0, to == from ? 0 : 1);
      if (cluster.link(to, from).byte_seconds != same.byte_seconds) return false;
    }
  }
  return true;
}

}  // namespace

Result<PathSolution> solve_paths(const Problem& problem, std::span<const Load> loads,
                                 std::span<const double> budgets, bool copies,
                                 const solve::Limits& limits, std::span<const FetchPath> start) {
  RECMILL_CHECK(!copies || !problem.training);
  PathProgram program(problem, each_counted(loads), budgets, copies, true);
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

Result<bool> rule_out(const Problem& problem, std::span<const Load> loads,
                      std::span<const double> budgets, double seconds,
                      const solve::Limits& limits) {
  RECMILL_CHECK(!problem.training);
  PathProgram program(problem, join_alike(loads), budgets, true, true);
  program.limit_time(seconds);
  if (are_interchangeable(problem.cluster, budgets)) program.order_devices(budgets);
  RECMILL_ASSIGN_OR_RETURN(const solve::Solution solution, solve::solve(program.program(), limits));
  return solution.outcome == solve::Outcome::infeasible;
}

Result<CutSolution> solve_by_cutting(const Problem& problem, std::span<const Load> loads,
                                     std::span<const double> budgets, bool copies) {
  RECMILL_CHECK(!copies || !problem.training);
  PathProgram program(problem, each_counted(loads), budgets, copies, false);
  RECMILL_ASSIGN_OR_RETURN(const solve::Solution solution, solve::solve(program.program()));
  if (solution.outcome != solve::Outcome::optimal)
    return Status::BadRequest("rows do not fit the devices, in whatever way");
  return CutSolution{solution.objective * program.unit(), program.paths_of(solution.values)};
}

}  // namespace recmill::placement
