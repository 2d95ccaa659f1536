// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/fit_tables.h"

#include <algorithm>
#include <numeric>

namespace recmill::store {
namespace {

/// A knapsack by branch and bound: tables in descending order of their traffic for each byte, each
/// taken before it is left, so that the first choice seen is the one by that order.
class FitSearch {
 public:
  explicit FitSearch(std::span<const TableTraffic> tables) : tables_(tables) {
    order_.resize(tables.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, [&](size_t a, size_t b) { return density(a) > density(b); });
    chosen_.assign(tables.size(), GpuMemory::host);
  }

  std::vector<GpuMemory> run(int64_t free) {
    descend(0, free, 0.0);
    return best_;
  }

 private:
  static constexpr int64_t kMostSteps = 100000;

  double density(size_t table) const {
    return tables_[table].bytes_a_sample /
           static_cast<double>(std::max<int64_t>(1, tables_[table].bytes));
  }

  /// The most traffic that tables from `next` on may add, if the last one that fits could be cut.
  double bound(size_t next, int64_t free) const {
    double traffic = 0;
    for (; next < order_.size(); ++next) {
      const TableTraffic& table = tables_[order_[next]];
      if (table.bytes > free) return traffic + density(order_[next]) * static_cast<double>(free);
      free -= table.bytes;
      traffic += table.bytes_a_sample;
    }
    return traffic;
  }

  void descend(size_t next, int64_t free, double traffic) {
    if (!best_.empty() &&
        (++steps_ > kMostSteps || traffic + bound(next, free) <= best_traffic_ * (1 + kRounding)))
      return;
    if (next == order_.size()) {
      best_ = chosen_;
      best_traffic_ = traffic;
      return;
    }
    const size_t table = order_[next];
    if (tables_[table].bytes <= free) {
      chosen_[table] = GpuMemory::device;
      descend(next + 1, free - tables_[table].bytes, traffic + tables_[table].bytes_a_sample);
      chosen_[table] = GpuMemory::host;
    }
    descend(next + 1, free, traffic);
  }

  static constexpr double kRounding = 1e-12;  // sums in another order are no gain

  const std::span<const TableTraffic> tables_;
  std::vector<size_t> order_;
  std::vector<GpuMemory> chosen_, best_;
  double best_traffic_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

std::vector<GpuMemory> fit_tables(std::span<const TableTraffic> tables, int64_t free) {
  if (tables.empty()) return {};
  return FitSearch(tables).run(free);
}

}  // namespace recmill::store
