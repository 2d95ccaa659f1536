// SPDX-License-Identifier: Apache-2.0
#include "placement/few/path_annealing.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "placement/few/path_steps.h"

namespace recmill::placement {
namespace {

constexpr int kRounds = 8;
constexpr int64_t kSteps = 4'000'000;  // of a round
/// A step that makes the slowest device slower by this share of its time is kept with a chance of
/// 1 / e, at first and at last.
constexpr double kHot = 0.03, kCold = 0.0003;
constexpr double kPower = 24;  // of the mean that stands for the slowest device's time

class Annealing {
 public:
  Annealing(const Problem& problem, std::span<const Load> loads, std::span<const double> budgets,
            std::vector<FetchPath>& paths, DeviceCosts& costs)
      : problem_(problem),
        loads_(loads),
        budgets_(budgets),
        paths_(paths),
        costs_(costs),
        unit_(std::max(costs.largest_seconds(), 1e-300)) {}

  // Each round starts from the best paths so far, less hot than the one before.
  void run() {
    for (int round = 0; round < kRounds; ++round) cool(kHot * std::exp2(-round / 2.0));
  }

 private:
  void cool(double hot) {
    double now = slowness(), least = costs_.largest_seconds();
    std::vector<FetchPath> best = paths_;
    for (int64_t step = 0; step < kSteps; ++step) {
      const double done = static_cast<double>(step) / static_cast<double>(kSteps);
      changed_.clear();
      change();
      if (changed_.empty()) continue;
      const double heat = hot * std::pow(kCold / hot, done);
      const double with = fits() ? slowness() : std::numeric_limits<double>::infinity();
      if (with > now && !(chance() < std::exp((now - with) / heat))) {
        take_back();
        continue;
      }
      now = with;
      if (const double largest = costs_.largest_seconds(); largest < least)
        least = largest, best = paths_;
    }
    for (size_t p = 0; p < loads_.size(); ++p) set(p, best[p]);
  }

  uint64_t draw(uint64_t below) { return Random::mix(++draws_) % below; }
  double chance() { return static_cast<double>(Random::mix(++draws_) >> 11) * 0x1p-53; }
  int draw_device() { return static_cast<int>(draw(static_cast<uint64_t>(problem_.devices()))); }
  size_t draw_load() { return draw(loads_.size()); }

  // A mean of high power rather than the largest: where several devices are the slowest no single
  // step makes that one less.
  double slowness() const {
    double sum = 0;
    for (int d = 0; d < costs_.devices(); ++d) sum += std::pow(costs_.seconds(d) / unit_, kPower);
    return std::pow(sum, 1 / kPower);
  }
  bool fits() const {
    for (int d = 0; d < costs_.devices(); ++d)
      if (costs_.memory(d) > budgets_[d] * (1 + 1e-9)) return false;
    return true;
  }

  void set(size_t p, const FetchPath& path) {
    if (path == paths_[p]) return;
    costs_.remove(loads_[p], paths_[p]);
    paths_[p] = path;
    costs_.add(loads_[p], path);
  }
  void change_to(size_t p, const FetchPath& path) {
    changed_.push_back({p, paths_[p]});
    set(p, path);
  }
  void take_back() {
    for (size_t i = changed_.size(); i-- > 0;) set(changed_[i].first, changed_[i].second);
  }

  void change() {
    const size_t p = draw_load(), q = draw_load();
    const int d = draw_device(), e = draw_device();
    switch (draw(4)) {
      case 0:
        return toggle(p, d);
      case 1:
        move(p, d, e);
        return;
      case 2:
        return exchange(p, q, d, e);
      default:
        return redirect(p, d, e);
    }
  }
  // Makes or drops a copy.
  void toggle(size_t p, int d) {
    if (!paths_[p].has_copy(d)) return change_to(p, with_copy(problem_, paths_[p], d));
    if (paths_[p].copies() > 1) change_to(p, without_copy(problem_, paths_[p], d));
  }
  bool move(size_t p, int from, int to) {
    if (!paths_[p].has_copy(from) || paths_[p].has_copy(to)) return false;
    change_to(p, without_copy(problem_, with_copy(problem_, paths_[p], to), from));
    return true;
  }
  // A copy of p goes from d to e for one of q that goes the other way, or is made or dropped.
  void exchange(size_t p, size_t q, int d, int e) {
    if (p == q) return;
    if (d == e) {
      if (!paths_[p].has_copy(d) || paths_[q].has_copy(d) || paths_[p].copies() < 2) return;
      toggle(p, d);
      return toggle(q, d);
    }
    if (paths_[q].has_copy(e) && !paths_[q].has_copy(d) && move(p, d, e)) move(q, e, d);
  }
  void redirect(size_t p, int to, int from) {
    if (paths_[p].has_copy(to) || !paths_[p].has_copy(from)) return;
    FetchPath path = paths_[p];
    path.from[to] = from;
    if (path != paths_[p]) change_to(p, path);
  }

  const Problem& problem_;
  std::span<const Load> loads_;
  std::span<const double> budgets_;
  std::vector<FetchPath>& paths_;
  DeviceCosts& costs_;
  const double unit_;
  std::vector<std::pair<size_t, FetchPath>> changed_;  // by this step, and their paths before
  uint64_t draws_ = 0;
};

}  // namespace

void anneal_paths(const Problem& problem, std::span<const Load> loads,
                  std::span<const double> budgets, std::vector<FetchPath>& paths,
                  DeviceCosts& costs) {
  RECMILL_CHECK(!problem.training);
  if (loads.empty() || problem.devices() < 2) return;
  Annealing(problem, loads, budgets, paths, costs).run();
}

}  // namespace recmill::placement
