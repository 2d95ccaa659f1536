// SPDX-License-Identifier: Apache-2.0
#include "placement/few/path_search.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "placement/few/path_steps.h"

namespace recmill::placement {
namespace {

/// Loads up to which all ways of placing them are looked through, in so many steps at most.
constexpr size_t kFewLoads = 10;
constexpr int kFewDevices = 4;
constexpr int64_t kSteps = 2'000'000;
constexpr int64_t kRounds = 4000;
constexpr int64_t kExchanges = 200'000;  // looked at in a round

/// Memory that is lacking, then the largest time, then the sum of squares: where several devices
/// are the slowest no single step makes the largest time less.
struct Slowness {
  double lacking = 0, largest = 0, squares = 0;
  bool operator<(const Slowness& other) const {
    if (lacking != other.lacking) return lacking < other.lacking;
    const double least = 1e-12 * other.largest;
    if (largest < other.largest - least) return true;
    return largest <= other.largest + least && squares < other.squares * (1 - 1e-12);
  }
};

class PathSearch {
 public:
  PathSearch(const Problem& problem, std::span<const Load> loads, std::span<const double> budgets,
             std::vector<FetchPath>& paths, DeviceCosts& costs)
      : problem_(problem), loads_(loads), budgets_(budgets), paths_(paths), costs_(costs) {}

  // Depth first through all ways of the heaviest load, then of the next: none is followed that is
  // slower already than the best one, or does not fit.
  void all_ways(bool copies) {
    every_path_ = copies ? all_paths() : single_paths();
    best_ = slowness();
    std::vector<FetchPath> best = paths_;
    std::vector<size_t> order(loads_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t p) { return loads_[p].fetched; });
    for (size_t p = 0; p < loads_.size(); ++p) costs_.remove(loads_[p], paths_[p]);
    int64_t left = kSteps;
    descend(order, left, best);
    paths_ = best;
    for (size_t p = 0; p < loads_.size(); ++p) costs_.add(loads_[p], paths_[p]);
  }

  void local(bool copies) {
    for (int64_t round = 0; round < kRounds; ++round)
      if (!change_one(copies) && !exchange_two(copies)) return;
  }

 private:
  Slowness slowness() const {
    Slowness of;
    for (int d = 0; d < costs_.devices(); ++d) {
      const double seconds = costs_.seconds(d);
      const double lacking = costs_.memory(d) - budgets_[d];
      if (lacking > 1e-9 * budgets_[d]) of.lacking += lacking;
      of.largest = std::max(of.largest, seconds);
      of.squares += seconds * seconds;
    }
    return of;
  }
  void set(size_t p, const FetchPath& path) {
    costs_.remove(loads_[p], paths_[p]);
    paths_[p] = path;
    costs_.add(loads_[p], path);
  }

  void descend(std::span<const size_t> order, int64_t& left, std::vector<FetchPath>& best) {
    if (best_ < slowness() || --left < 0) return;
    if (order.empty()) {
      const Slowness now = slowness();
      if (now < best_) best_ = now, best = paths_;
      return;
    }
    const size_t p = order[0];
    for (const FetchPath& path : every_path_) {
      paths_[p] = path;
      costs_.add(loads_[p], path);
      descend(order.subspan(1), left, best);
      costs_.remove(loads_[p], path);
    }
  }

  /// Calls visit(path) for each path that a step away from p's.
  template <typename Visit>
  void neighbors(size_t p, bool copies, const Visit& visit) const {
    const FetchPath path = paths_[p];
    const int devices = costs_.devices();
    for (int d = 0; d < devices; ++d) {
      if (path.copies() == 1 && d != path.home) visit(FetchPath::at(d, devices));
      if (!copies) continue;
      if (!path.has_copy(d)) {
        visit(with_copy(problem_, path, d));
        for (int from = 0; from < devices; ++from) {
          if (from == path.from[d] || !path.has_copy(from)) continue;
          FetchPath other = path;
          other.from[d] = from;
          visit(other);
        }
      } else if (path.copies() > 1) {
        visit(without_copy(problem_, path, d));
      }
    }
  }

  bool change_one(bool copies) {
    Slowness best = slowness();
    size_t best_p = loads_.size();
    FetchPath best_path;
    for (size_t p = 0; p < loads_.size(); ++p) {
      const FetchPath now = paths_[p];
      neighbors(p, copies, [&](const FetchPath& path) {
        set(p, path);
        const Slowness with = slowness();
        if (with < best) best = with, best_p = p, best_path = path;
        set(p, now);
      });
    }
    if (best_p < loads_.size()) set(best_p, best_path);
    return best_p < loads_.size();
  }

  std::vector<FetchPath> single_paths() const {
    std::vector<FetchPath> paths;
    for (int d = 0; d < costs_.devices(); ++d) paths.push_back(FetchPath::at(d, costs_.devices()));
    return paths;
  }
  /// Every path that there is; none where these are more than a few.
  std::vector<FetchPath> all_paths() const {
    std::vector<FetchPath> paths;
    const int devices = costs_.devices();
    if (devices > kFewDevices) return paths;
    for (int holders = 1; holders < 1 << devices; ++holders) {
      std::vector<FetchPath> of{{-1, {}}};
      for (int d = 0; d < devices; ++d) {
        const bool copy = (holders >> d & 1) != 0;
        if (copy && of[0].home < 0)
          for (FetchPath& path : of) path.home = d;
        std::vector<FetchPath> longer;
        for (const FetchPath& path : of)
          for (int from = 0; from < devices; ++from) {
            if (copy ? from != d : (holders >> from & 1) == 0) continue;
            longer.push_back(path);
            longer.back().from.push_back(from);
          }
        of = std::move(longer);
      }
      for (FetchPath& path : of) {
        path.home = path.from[0];
        paths.push_back(std::move(path));
      }
    }
    return paths;
  }

  bool better_with(size_t p, const FetchPath& for_p, size_t q, const FetchPath& for_q,
                   const Slowness& than) {
    const FetchPath p_now = paths_[p], q_now = paths_[q];
    set(p, for_p);
    set(q, for_q);
    if (slowness() < than) return true;
    set(p, p_now);
    set(q, q_now);
    return false;
  }

  // Homes of two, or a copy of one for a copy of the other.
  bool exchange_two(bool copies) {
    const Slowness now = slowness();
    const int devices = costs_.devices();
    int64_t tried = 0;
    for (size_t p = 0; p < loads_.size(); ++p) {
      for (size_t q = 0; q < loads_.size(); ++q) {
        if (++tried > kExchanges) return false;
        const FetchPath &a = paths_[p], &b = paths_[q];
        if (p < q && a.copies() == 1 && b.copies() == 1 && a.home != b.home &&
            better_with(p, FetchPath::at(b.home, devices), q, FetchPath::at(a.home, devices), now))
          return true;
        if (!copies || p == q || a.copies() == 1) continue;
        for (int d = 0; d < devices; ++d)
          if (paths_[p].has_copy(d) && !paths_[q].has_copy(d) &&
              better_with(p, without_copy(problem_, paths_[p], d), q,
                          with_copy(problem_, paths_[q], d), now))
            return true;
      }
    }
    return false;
  }

  const Problem& problem_;
  std::span<const Load> loads_;
  std::span<const double> budgets_;
  std::vector<FetchPath>& paths_;
  DeviceCosts& costs_;
  Slowness best_;
  std::vector<FetchPath> every_path_;
};

}  // namespace

void search_paths(const Problem& problem, std::span<const Load> loads,
                  std::span<const double> budgets, bool copies, std::vector<FetchPath>& paths,
                  DeviceCosts& costs) {
  PathSearch search(problem, loads, budgets, paths, costs);
  search.local(copies);
  if (loads.size() <= kFewLoads && costs.devices() <= kFewDevices) search.all_ways(copies);
}

}  // namespace recmill::placement
