// SPDX-License-Identifier: Apache-2.0
#include "hotset/decide_hot_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "hotset/hot_curve.h"
#include "hotset/hot_cutoff.h"

namespace recmill::hotset {
namespace {

std::string on_device(const HotProblem& problem) {
  return problem.devices > 1 ? " of a device" : "";
}

Result<int64_t> cutoff_by_threshold(const HotProblem& problem, const HotCurve& curve,
                                    int64_t inputs) {
  const int64_t cutoff = cutoff_of(problem.threshold, inputs);
  const int64_t bytes = curve.most_bytes(cutoff);
  if (bytes <= problem.bytes) return cutoff;
  return Status::BadRequest(
      fmt::format("hotset.threshold: {} of {} inputs makes rows of {} lookups hot, which take {} "
                  "bytes{}; hotset.bytes is {}, in which rows of {} fit",
                  problem.threshold, inputs, cutoff, bytes, on_device(problem), problem.bytes,
                  curve.least_that_fits(problem.bytes)));
}

/// The hottest rows that fit beside those of tables that are always hot.
class Filling {
 public:
  explicit Filling(const HotProblem& problem)
      : problem_(problem), left_(static_cast<size_t>(problem.devices), problem.bytes) {
    for (const HotProblemTable& table : problem.tables)
      if (table.always_hot) take(table, table.rows);
  }

  void fill(const stats::AccessCounter& counts, HotSet& set) {
    std::vector<std::tuple<int64_t, size_t, int64_t>> rows;  // less its lookups, table, row
    for (size_t t = 0; t < problem_.tables.size(); ++t) {
      if (problem_.tables[t].always_hot) continue;
      for (const int64_t row : counts.rows_from(t, 1))
        rows.emplace_back(-counts.count(t, row), t, row);
    }
    std::ranges::sort(rows);
    for (const auto& [count, t, row] : rows) {
      if (!has_room(problem_.tables[t])) continue;
      take(problem_.tables[t], 1);
      set.tables[t].hot_rows.push_back(row);
    }
    for (HotTable& table : set.tables) std::ranges::sort(table.hot_rows);
  }

 private:
  template <typename Do>
  void each_device(const HotProblemTable& table, const Do& action) {
    for (size_t d = 0; d < left_.size(); ++d)
      if (table.device < 0 || table.device == static_cast<int>(d)) action(left_[d]);
  }
  bool has_room(const HotProblemTable& table) {
    bool room = true;
    each_device(table, [&](int64_t& left) { room = room && left >= table.row_bytes; });
    return room;
  }
  void take(const HotProblemTable& table, int64_t rows) {
    each_device(table, [&](int64_t& left) { left -= rows * table.row_bytes; });
  }

  const HotProblem& problem_;
  std::vector<int64_t> left_;  // [devices]
};

}  // namespace

Result<HotSet> decide_hot_set(const HotProblem& problem, const stats::AccessCounter& counts) {
  const HotCurve curve(problem, counts);
  const int64_t always = curve.most_bytes(curve.cutoffs().back());
  if (always > problem.bytes)
    return Status::BadRequest(fmt::format(
        "hotset.bytes: {} is less than the {} bytes{} that tables of less than 1 MiB of weights "
        "take, which are always hot",
        problem.bytes, always, on_device(problem)));
  HotSet set{.model = counts.model(), .inputs = counts.samples(), .cutoff = 0, .tables = {}};
  for (const HotProblemTable& table : problem.tables)
    set.tables.push_back({table.name, table.rows, table.always_hot, {}});
  if (problem.fill) {
    Filling(problem).fill(counts, set);
    return set;
  }
  set.cutoff = curve.least_that_fits(problem.bytes);
  if (problem.threshold > 0) {
    RECMILL_ASSIGN_OR_RETURN(set.cutoff, cutoff_by_threshold(problem, curve, set.inputs));
  }
  for (size_t t = 0; t < set.tables.size(); ++t)
    if (!set.tables[t].all_hot) set.tables[t].hot_rows = counts.rows_from(t, set.cutoff);
  return set;
}

}  // namespace recmill::hotset
