// SPDX-License-Identifier: Apache-2.0
#include "placement/balance.h"

#include <algorithm>
#include <cmath>
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

template <typename Size, typename Over>
void assign(std::vector<size_t> order, const Size& size, const Over& over, Shares& shares) {
  std::ranges::stable_sort(order, std::greater<>(), size);
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

/// Largest time, then the sum of squares: equal largest ones may hide a way to lower them.
struct Slowness {
  double largest = 0, squares = 0;
  bool operator<(const Slowness& other) const {
    const double least = 1e-12 * other.largest;
    if (largest < other.largest - least) return true;
    return largest <= other.largest + least && squares < other.squares * (1 - 1e-12);
  }
};

class SlowestSearch {
 public:
  SlowestSearch(const Problem& problem, std::span<const Load> loads, DeviceCosts& costs,
                std::vector<int>& devices)
      : problem_(problem), loads_(loads), costs_(costs), devices_(devices) {
    for (int d = 0; d < costs.devices(); ++d) paths_.push_back(FetchPath::at(d, costs.devices()));
  }

  void all_ways() {
    best_ = slowness();
    std::vector<int> best = devices_;
    for (size_t p = 0; p < loads_.size(); ++p) costs_.remove(loads_[p], paths_[devices_[p]]);
    descend(0, best);
    devices_ = best;
    for (size_t p = 0; p < loads_.size(); ++p) costs_.add(loads_[p], paths_[devices_[p]]);
  }

  void local() {
    for (int64_t round = 0; round < kRounds; ++round)
      if (!move_one() && !exchange_two()) return;
  }

 private:
  static constexpr int64_t kRounds = 2000;
  static constexpr int64_t kExchanges = 400'000;

  Slowness slowness() const {
    Slowness of;
    for (int d = 0; d < costs_.devices(); ++d) {
      const double seconds = costs_.seconds(d);
      of.largest = std::max(of.largest, seconds);
      of.squares += seconds * seconds;
    }
    return of;
  }
  bool fits(int device) const {
    const auto limit = static_cast<double>(problem_.cluster.devices[device].memory_bytes);
    return costs_.memory(device) <= limit * (1 + 1e-12);
  }
  void put(size_t p, int device) {
    costs_.remove(loads_[p], paths_[devices_[p]]);
    devices_[p] = device;
    costs_.add(loads_[p], paths_[device]);
  }

  void descend(size_t p, std::vector<int>& best) {
    if (p == loads_.size()) {
      const Slowness now = slowness();
      if (now < best_) best_ = now, best = devices_;
      return;
    }
    for (int d = 0; d < costs_.devices(); ++d) {
      devices_[p] = d;
      costs_.add(loads_[p], paths_[d]);
      if (fits(d)) descend(p + 1, best);
      costs_.remove(loads_[p], paths_[d]);
    }
  }

  bool move_one() {
    Slowness best = slowness();
    size_t best_p = 0;
    int best_d = -1;
    for (size_t p = 0; p < loads_.size(); ++p) {
      const int home = devices_[p];
      for (int d = 0; d < costs_.devices(); ++d) {
        if (d == home) continue;
        put(p, d);
        const Slowness now = slowness();
        if (fits(d) && now < best) best = now, best_p = p, best_d = d;
        put(p, home);
      }
    }
    if (best_d >= 0) put(best_p, best_d);
    return best_d >= 0;
  }

  bool exchange_two() {
    const Slowness now = slowness();
    int64_t tried = 0;
    for (size_t p = 0; p < loads_.size(); ++p) {
      for (size_t q = p + 1; q < loads_.size(); ++q) {
        const int a = devices_[p], b = devices_[q];
        if (a == b || ++tried > kExchanges) continue;
        put(p, b), put(q, a);
        if (fits(a) && fits(b) && slowness() < now) return true;
        put(p, a), put(q, b);
      }
    }
    return false;
  }

  const Problem& problem_;
  std::span<const Load> loads_;
  DeviceCosts& costs_;
  std::vector<int>& devices_;
  std::vector<FetchPath> paths_;
  Slowness best_;
};

constexpr double kAllWays = 20'000;

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

void speed_up_slowest(const Problem& problem, std::span<const Load> loads, DeviceCosts& costs,
                      std::vector<int>& devices) {
  SlowestSearch search(problem, loads, costs, devices);
  const double ways = std::pow(costs.devices(), static_cast<double>(loads.size()));
  if (ways <= kAllWays) return search.all_ways();
  search.local();
}

}  // namespace recmill::placement
