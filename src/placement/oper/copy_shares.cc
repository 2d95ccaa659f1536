// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/copy_shares.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "placement/few/path_steps.h"
#include "placement/few/time_program.h"
#include "solve/solve.h"

namespace recmill::placement {
namespace {

using solve::kInfinity;

constexpr size_t kListedClasses = 64, kOtherClasses = 8;
/// Of the memory for copies: what the densest rows take that have one on every device.
constexpr double kCertainShare = 0.005;
constexpr double kLeastSpare = 1e-4;  // of all memory
constexpr double kNoShare = 1e-9;
constexpr int kTurns = 3;  // paths for a set of holders, at most

double density(const Load& load) {
  return load.fetched / std::max(load.memory, 1e-300);
}

struct LoadClass {
  std::vector<size_t> loads;  // densest first
  Load sum;
};

/// Indices of the loads in [begin, end), the densest first.
std::vector<size_t> densest_first(std::span<const Load> loads, size_t begin, size_t end) {
  std::vector<size_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t p) { return density(loads[p]); });
  return order;
}

/// Each class goes from a densest load on down to one of so many octaves less, the fewest for which
/// there are `most` classes at most.
std::vector<LoadClass> classes_of(std::span<const Load> loads, std::span<const size_t> order,
                                  size_t most) {
  for (double octaves = 1.0 / 64;; octaves *= 1.25) {
    std::vector<LoadClass> classes;
    double least = kInfinity;
    for (const size_t p : order) {
      if (classes.empty() || density(loads[p]) < least) {
        classes.emplace_back();
        least = density(loads[p]) * std::exp2(-octaves);
      }
      classes.back().loads.push_back(p);
      classes.back().sum += loads[p];
    }
    if (classes.size() <= most) return classes;
  }
}

/// Paths for each set of devices that hold copies; where others have several that are as near,
/// different ones, so that no copy need be fetched more than another one.
std::vector<FetchPath> paths_of_sets(const Problem& problem) {
  std::vector<FetchPath> paths;
  const int devices = problem.devices();
  for (int set = 1; set < 1 << devices; ++set) {
    FetchPath path{-1, std::vector<int>(devices, -1)};
    for (int d = 0; d < devices; ++d) {
      if ((set >> d & 1) == 0) continue;
      path.from[d] = d;
      if (path.home < 0) path.home = d;
    }
    const FetchPath copies = path;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (int d = 0; d < devices; ++d)
        if (!copies.has_copy(d)) path.from[d] = nearest_copy(problem, copies, d, turn);
      if (turn == 0 || path != paths.back()) paths.push_back(path);
    }
  }
  return paths;
}

/// Columns: the share of a class that goes by a path.
class ShareProgram {
 public:
  ShareProgram(const Problem& problem, std::span<const Load> loads, size_t listed,
               std::span<const double> budgets)
      : problem_(problem),
        loads_(loads),
        paths_(paths_of_sets(problem)),
        uses_(uses_of_paths()),
        memory_unit_(spare(budgets)),
        time_(problem, unit()),
        memory_(problem.devices()) {
    const std::vector<size_t> order = densest_first(loads, 0, listed);
    const size_t certain = certain_loads(order);
    LoadClass first;
    for (const size_t p : std::span(order).first(certain)) {
      first.loads.push_back(p);
      first.sum += loads[p];
    }
    if (certain > 0) add_class(std::move(first), Copies::everywhere, budgets);
    for (LoadClass& one : classes_of(loads, std::span(order).subspan(certain), kListedClasses))
      add_class(std::move(one), Copies::any, budgets);
    for (LoadClass& one :
         classes_of(loads, densest_first(loads, listed, loads.size()), kOtherClasses))
      add_class(std::move(one), Copies::one, budgets);
    time_.finish(DeviceCosts(problem));
    for (std::vector<solve::Entry>& row : memory_)
      if (!row.empty()) time_.program().add_row(-kInfinity, 1.0, std::move(row));
  }

  Result<SharedCopies> solve() {
    RECMILL_ASSIGN_OR_RETURN(const solve::Solution solution, solve::solve(time_.program()));
    if (solution.outcome != solve::Outcome::optimal)
      return Status::BadRequest("rows do not fit the devices, in whatever way");
    return SharedCopies{deal(solution.values), solution.objective * time_.unit()};
  }

 private:
  struct Share {
    int64_t column;
    size_t path;
  };

  /// Bytes of a device for copies, on average.
  double spare(std::span<const double> budgets) const {
    double bytes = 0;
    for (const double budget : budgets) bytes += budget;
    const double all = bytes;
    for (const Load& load : loads_) bytes -= load.memory;
    return std::max(bytes, kLeastSpare * all) / problem_.devices();
  }

  double unit() const {
    Load all;
    for (const Load& load : loads_) all += load;
    DeviceCosts costs(problem_);
    for (int d = 0; d < problem_.devices(); ++d)
      costs.add(all * (1.0 / problem_.devices()), FetchPath::at(d, problem_.devices()));
    return std::max(costs.largest_seconds(), 1e-300);
  }

  /// How many of the densest loads have copies everywhere, for next to nothing: the program would
  /// leave some away where that slows a device that is not the slowest.
  size_t certain_loads(std::span<const size_t> order) const {
    double bytes = 0;
    size_t count = 0;
    while (count < order.size()) {
      bytes += loads_[order[count]].memory;
      if (bytes > kCertainShare * memory_unit_) break;
      ++count;
    }
    return count;
  }

  enum class Copies { one, any, everywhere };

  void add_class(LoadClass one, Copies copies, std::span<const double> budgets) {
    std::vector<solve::Entry> whole;
    std::vector<Share>& shares = shares_.emplace_back();
    for (size_t p = 0; p < paths_.size(); ++p) {
      if (copies == Copies::one && paths_[p].copies() > 1) continue;
      if (copies == Copies::everywhere && paths_[p].copies() < problem_.devices()) continue;
      const int64_t column = time_.program().add_column(0.0, 0.0, 1.0);
      DeviceCosts costs(problem_);
      costs.add(one.sum, paths_[p]);
      time_.add(column, costs);
      for (int d = 0; d < problem_.devices(); ++d) {
        const double part = one.sum.memory / budgets[d];
        if (paths_[p].has_copy(d) && part > 1e-9) memory_[d].push_back({column, part});
      }
      whole.push_back({column, 1.0});
      shares.push_back({column, p});
    }
    time_.program().add_row(1.0, 1.0, std::move(whole));
    classes_.push_back(std::move(one));
  }

  // Loads in descending order of what they fetch, each to that path of its class for which what
  // devices have so far is the nearest to their shares.
  std::vector<FetchPath> deal(const std::vector<double>& values) const {
    std::vector<size_t> order(loads_.size()), class_of(loads_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t p) { return loads_[p].fetched; });
    std::vector<std::vector<size_t>> choices;
    for (size_t k = 0; k < classes_.size(); ++k) {
      for (const size_t p : classes_[k].loads) class_of[p] = k;
      choices.push_back(choices_of(shares_[k], values));
    }
    std::vector<double> over(uses_[0].size());
    std::vector<FetchPath> paths(loads_.size());
    for (const size_t p : order) {
      for (const Share& share : shares_[class_of[p]])
        if (values[share.column] > kNoShare)
          add_use(loads_[p], share.path, -values[share.column], over);
      size_t best = 0;
      double least = kInfinity;
      for (const size_t path : choices[class_of[p]]) {
        std::vector<double> with = over;
        add_use(loads_[p], path, 1, with);
        const double squares = std::inner_product(with.begin(), with.end(), with.begin(), 0.0);
        if (squares < least) least = squares, best = path;
      }
      add_use(loads_[p], best, 1, over);
      paths[p] = paths_[best];
    }
    return paths;
  }

  /// Paths that have a share, and those that differ from one in which of two equally near copies a
  /// device fetches.
  std::vector<size_t> choices_of(const std::vector<Share>& shares,
                                 const std::vector<double>& values) const {
    std::vector<size_t> choices;
    for (const Share& share : shares) {
      const bool chosen = std::ranges::any_of(shares, [&](const Share& other) {
        return values[other.column] > kNoShare && same_holders(share.path, other.path);
      });
      if (chosen) choices.push_back(share.path);
    }
    return choices;
  }
  bool same_holders(size_t a, size_t b) const {
    for (int d = 0; d < problem_.devices(); ++d)
      if (paths_[a].has_copy(d) != paths_[b].has_copy(d)) return false;
    return true;
  }

  /// What a path takes of each device: time of its two ports and of lookups a byte fetched, and
  /// copies.
  std::vector<std::vector<double>> uses_of_paths() const {
    const int devices = problem_.devices();
    std::vector<std::vector<double>> uses;
    for (const FetchPath& path : paths_) {
      std::vector<double>& use = uses.emplace_back(4 * devices);
      for (int to = 0; to < devices; ++to) {
        const int from = path.from[to];
        const double seconds = problem_.cluster.link(to, from).byte_seconds;
        if (to != from) use[to] += seconds, use[devices + from] += seconds;
        use[2 * devices + from] += problem_.cluster.link(from, from).byte_seconds;
        if (to == from) use[3 * devices + to] = 1;
      }
    }
    return uses;
  }
  void add_use(const Load& load, size_t path, double part, std::vector<double>& over) const {
    const std::vector<double>& use = uses_[path];
    const double seconds = part * load.fetched / time_.unit();
    const double memory = part * load.memory / memory_unit_;
    const size_t timed = 3 * static_cast<size_t>(problem_.devices());
    for (size_t i = 0; i < use.size(); ++i) over[i] += use[i] * (i < timed ? seconds : memory);
  }

  const Problem& problem_;
  std::span<const Load> loads_;
  const std::vector<FetchPath> paths_;
  const std::vector<std::vector<double>> uses_;  // [paths]
  const double memory_unit_;                     // bytes: a device's for copies, on average
  std::vector<LoadClass> classes_;
  std::vector<std::vector<Share>> shares_;  // [classes]
  TimeProgram time_;
  std::vector<std::vector<solve::Entry>> memory_;  // [devices], in units of the budget
};

double link_seconds(const Problem& problem, const FetchPath& path) {
  double seconds = 0;
  for (int to = 0; to < problem.devices(); ++to)
    if (!path.has_copy(to)) seconds += problem.cluster.link(to, path.from[to]).byte_seconds;
  return seconds;
}

/// Takes copies off devices that have more than their budgets by what loads are not cut, first
/// those that cost the least time a byte.
void keep_budgets(const Problem& problem, std::span<const Load> loads,
                  std::span<const double> budgets, std::vector<FetchPath>& paths) {
  DeviceCosts costs(problem);
  for (size_t p = 0; p < loads.size(); ++p) costs.add(loads[p], paths[p]);
  for (int d = 0; d < problem.devices(); ++d) {
    if (costs.memory(d) <= budgets[d]) continue;
    std::vector<std::pair<double, size_t>> copies;  // seconds lost a byte, and the load
    for (size_t p = 0; p < loads.size(); ++p) {
      if (paths[p].copies() < 2 || !paths[p].has_copy(d)) continue;
      const double more = link_seconds(problem, without_copy(problem, paths[p], d)) -
                          link_seconds(problem, paths[p]);
      copies.push_back({more * density(loads[p]), p});
    }
    std::ranges::sort(copies);
    for (const auto& [seconds, p] : copies) {
      if (costs.memory(d) <= budgets[d]) break;
      costs.remove(loads[p], paths[p]);
      paths[p] = without_copy(problem, paths[p], d);
      costs.add(loads[p], paths[p]);
    }
  }
}

}  // namespace

Result<SharedCopies> share_copies(const Problem& problem, std::span<const Load> loads,
                                  size_t listed, std::span<const double> budgets) {
  RECMILL_CHECK(!problem.training && problem.devices() <= kMostSharingDevices);
  RECMILL_ASSIGN_OR_RETURN(SharedCopies shared,
                           ShareProgram(problem, loads, listed, budgets).solve());
  keep_budgets(problem, loads, budgets, shared.paths);
  return shared;
}

}  // namespace recmill::placement
