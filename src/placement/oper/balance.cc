// SPDX-License-Identifier: Apache-2.0
#include "placement/oper/balance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace recmill::placement {
namespace {

/// Fetched bytes and memory of the devices, in units of their targets' means.
class Shares {
 public:
  Shares(std::span<const Partition> partitions, const Targets& targets)
      : partitions_(partitions),
        targets_(targets),
        of_(partitions.size(), -1),
        fetched_(targets.fetched.size()),
        memory_(targets.memory.size()) {
    double fetched = 0, memory = 0;
    for (const Partition& partition : partitions) {
      fetched += partition.load.fetched;
      memory += partition.load.memory;
    }
    fetched_unit_ = std::max(fetched / devices(), 1e-300);
    memory_unit_ = std::max(memory / devices(), 1e-300);
  }

  int devices() const { return static_cast<int>(fetched_.size()); }
  double over_fetched(int d) const { return (fetched_[d] - targets_.fetched[d]) / fetched_unit_; }
  double over_memory(int d) const { return (memory_[d] - targets_.memory[d]) / memory_unit_; }
  double fetched(size_t p) const { return partitions_[p].load.fetched / fetched_unit_; }
  double memory(size_t p) const { return partitions_[p].load.memory / memory_unit_; }
  int device(size_t p) const { return of_[p]; }
  const std::vector<int>& all() const { return of_; }

  void put(size_t p, int d) {
    for (const auto& [device, sign] : {std::pair{of_[p], -1.0}, std::pair{d, 1.0}}) {
      if (device < 0) continue;
      fetched_[device] += sign * partitions_[p].load.fetched;
      memory_[device] += sign * partitions_[p].load.memory;
    }
    of_[p] = d;
  }

  /// Change of the sum of squares of what is over, when device a gives `fetched` and `memory` to b.
  double change(int a, int b, double fetched, double memory) const {
    return 2 * fetched * (over_fetched(b) - over_fetched(a) + fetched) +
           2 * memory * (over_memory(b) - over_memory(a) + memory);
  }

 private:
  std::span<const Partition> partitions_;
  const Targets& targets_;
  std::vector<int> of_;
  std::vector<double> fetched_, memory_;
  double fetched_unit_ = 1, memory_unit_ = 1;
};

/// Each to the device that is over the least. Of partitions of about the same size those of one
/// table follow each other, the hottest first, so that each device has some of every kind: what is
/// wrong in counts is then wrong on all devices alike.
template <typename Size, typename Over>
void assign(std::vector<size_t> order, const Size& size, const Over& over, Shares& shares) {
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t p) {
    return size(p) > 0 ? std::ilogb(size(p)) : std::numeric_limits<int>::min();
  });
  for (const size_t p : order) {
    int best = 0;
    for (int d = 1; d < shares.devices(); ++d)
      if (over(d) < over(best)) best = d;
    shares.put(p, best);
  }
}

/// Partitions by device, ascending in what they fetch, for finding one of a size.
class BySize {
 public:
  explicit BySize(const Shares& shares) : of_(shares.devices()) {
    std::vector<size_t> order(shares.all().size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t p) { return shares.fetched(p); });
    for (const size_t p : order) of_[shares.device(p)].push_back(p);
  }
  std::vector<size_t>& on(int device) { return of_[device]; }
  void move(size_t p, int from, int to, const Shares& shares) {
    std::erase(of_[from], p);
    const auto size = [&](size_t other) { return shares.fetched(other); };
    of_[to].insert(std::ranges::lower_bound(of_[to], shares.fetched(p), {}, size), p);
  }

 private:
  std::vector<std::vector<size_t>> of_;
};

constexpr int kNeighbors = 8;  // partitions of about the wanted size that are tried

/// The best move or exchange between two devices; false where none brings them nearer.
bool improve_pair(int a, int b, Shares& shares, BySize& by_size) {
  const double wanted = (shares.over_fetched(a) - shares.over_fetched(b)) / 2;
  constexpr size_t kNone = ~size_t{0};
  size_t best_p = kNone, best_q = kNone;
  double best = -1e-12;
  const auto consider = [&](size_t p, size_t q) {
    const double fetched = shares.fetched(p) - (q == kNone ? 0 : shares.fetched(q));
    const double memory = shares.memory(p) - (q == kNone ? 0 : shares.memory(q));
    const double change = shares.change(a, b, fetched, memory);
    if (change < best) best = change, best_p = p, best_q = q;
  };
  const auto size = [&](size_t p) { return shares.fetched(p); };
  const auto near = [&](const std::vector<size_t>& among, double target, const auto& visit) {
    const auto at = std::ranges::lower_bound(among, target, {}, size) - among.begin();
    const auto first = std::max<int64_t>(at - kNeighbors / 2, 0);
    const auto last = std::min<int64_t>(at + kNeighbors / 2, static_cast<int64_t>(among.size()));
    for (int64_t i = first; i < last; ++i) visit(among[i]);
  };
  near(by_size.on(a), wanted, [&](size_t p) { consider(p, kNone); });
  for (const size_t q : by_size.on(b))
    near(by_size.on(a), shares.fetched(q) + wanted, [&](size_t p) { consider(p, q); });
  if (best_p == kNone) return false;
  shares.put(best_p, b);
  by_size.move(best_p, a, b, shares);
  if (best_q == kNone) return true;
  shares.put(best_q, a);
  by_size.move(best_q, b, a, shares);
  return true;
}

/// Between the devices that are farthest over and under their shares, then between any two.
void improve(Shares& shares) {
  if (shares.devices() < 2) return;
  BySize by_size(shares);
  const auto limit = static_cast<int64_t>(4 * shares.all().size() + 64);
  std::vector<int> order(shares.devices());
  for (int64_t step = 0; step < limit; ++step) {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](int d) { return shares.over_fetched(d) + shares.over_memory(d); });
    bool better = false;
    for (size_t i = 0; i < order.size() && !better; ++i)
      for (size_t j = order.size() - 1; j > i && !better; --j)
        better = improve_pair(order[i], order[j], shares, by_size) ||
                 improve_pair(order[j], order[i], shares, by_size);
    if (!better) return;
  }
}

}  // namespace

double fetched_from(const DeviceCosts& costs, int device) {
  double bytes = 0;
  for (int to = 0; to < costs.devices(); ++to)
    if (to != device) bytes += costs.moved(DeviceCosts::fetch, to, device);
  return costs.devices() > 1 ? bytes / (costs.devices() - 1) : 0;
}

std::vector<int> balance(std::span<const Partition> partitions, const Targets& targets) {
  Shares shares(partitions, targets);
  std::vector<size_t> by_access, by_memory;
  for (size_t p = 0; p < partitions.size(); ++p)
    (partitions[p].access_bounded() ? by_access : by_memory).push_back(p);
  assign(
      by_access, [&](size_t p) { return shares.fetched(p); },
      [&](int d) { return shares.over_fetched(d); }, shares);
  assign(
      by_memory, [&](size_t p) { return shares.memory(p); },
      [&](int d) { return shares.over_memory(d); }, shares);
  improve(shares);
  return shares.all();
}

}  // namespace recmill::placement
