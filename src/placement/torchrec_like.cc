// SPDX-License-Identifier: Apache-2.0
// A planner in four stages as TorchRec's: enumerate ways for each table, estimate their cost,
// propose a way for every table, partition the proposal over devices; the best of the proposals
// wins.
#include <algorithm>
#include <optional>

#include "placement/build_plan.h"
#include "placement/cost_model.h"
#include "placement/planners.h"

namespace recmill::placement {
namespace {

enum class Way { table, columns, rows, copies };

struct Option {
  Way way = Way::table;
  int pieces = 1;      // of its rows or columns; copies are on every device
  Load piece;          // of one piece
  double seconds = 0;  // estimated, of the device that has a piece
};

class Planner {
 public:
  explicit Planner(const Problem& problem) : problem_(problem), devices_(problem.devices()) {
    for (size_t t = 0; t < problem.tables.size(); ++t) options_.push_back(enumerate(t));
  }

  // Each table's fastest way first, or a way of less memory until they fit together. Then the table
  // whose way costs the most takes its next one, as long as there is one that fits.
  std::optional<PlacementPlan> best() {
    std::vector<size_t> chosen(options_.size(), 0);
    std::optional<PlacementPlan> best = partition(chosen);
    while (!best) {
      if (!take_less_memory(chosen)) return best;
      best = partition(chosen);
    }
    double best_seconds = rate(problem_, *best).seconds;
    std::vector<bool> tried(options_.size());
    for (size_t t; (t = slowest_table(chosen, tried)) < options_.size();) {
      ++chosen[t];
      const auto plan = partition(chosen);
      if (!plan) {
        --chosen[t];
        tried[t] = true;
        continue;
      }
      const double seconds = rate(problem_, *plan).seconds;
      if (seconds < best_seconds) best = plan, best_seconds = seconds;
    }
    return best;
  }

 private:
  // Of those that have another way and were not tried in vain; their number where there is none.
  size_t slowest_table(const std::vector<size_t>& chosen, const std::vector<bool>& tried) const {
    size_t slowest = options_.size();
    double most = -1;
    for (size_t t = 0; t < options_.size(); ++t) {
      const double seconds = options_[t][chosen[t]].seconds;
      if (tried[t] || chosen[t] + 1 >= options_[t].size() || seconds <= most) continue;
      most = seconds, slowest = t;
    }
    return slowest;
  }

  // The largest table with copies takes its next way; where there is none, the largest that is not
  // split by rows is.
  bool take_less_memory(std::vector<size_t>& chosen) const {
    for (const bool copied : {true, false}) {
      size_t largest = options_.size();
      double most = -1;
      for (size_t t = 0; t < options_.size(); ++t) {
        const Option& option = options_[t][chosen[t]];
        const bool may = copied ? option.way == Way::copies && chosen[t] + 1 < options_[t].size()
                                : option.way != Way::rows && by_rows(t) < options_[t].size();
        if (may && option.piece.memory > most) most = option.piece.memory, largest = t;
      }
      if (largest == options_.size()) continue;
      chosen[largest] = copied ? chosen[largest] + 1 : by_rows(largest);
      return true;
    }
    return false;
  }
  size_t by_rows(size_t t) const {
    return std::ranges::find(options_[t], Way::rows, &Option::way) - options_[t].begin();
  }

  std::vector<Option> enumerate(size_t t) const {
    const PlacedTable& table = problem_.tables[t];
    const TableCounts& counts = problem_.counts.tables[t];
    const RowUses uses(counts, problem_.counts.samples, problem_.samples, devices_);
    const RowUse use = use_of_all(counts, uses);
    const Load all = load_of(problem_, table, static_cast<double>(table.spec.rows), use);
    std::vector<Option> options{{Way::table, 1, all, 0}};
    const auto groups = static_cast<int>((table.spec.dim + 15) / 16);
    if (devices_ > 1) {
      if (groups > 1) {
        const int pieces = std::min(groups, devices_);
        options.push_back({Way::columns, pieces, all * (1.0 / pieces), 0});
      }
      if (table.spec.rows >= devices_)
        options.push_back({Way::rows, devices_, all * (1.0 / devices_), 0});
      options.push_back({Way::copies, 1, all, 0});
    }
    for (Option& option : options) option.seconds = estimate(option);
    std::ranges::stable_sort(options, {}, &Option::seconds);
    return options;
  }

  double estimate(const Option& option) const {
    DeviceCosts costs(problem_);
    costs.add(option.piece, option.way == Way::copies ? FetchPath::everywhere(0, devices_)
                                                      : FetchPath::at(0, devices_));
    return costs.seconds(0);
  }

  // Pieces in descending order of cost, each to the device with the least cost that has room.
  std::optional<PlacementPlan> partition(const std::vector<size_t>& chosen) const {
    PlacementPlan plan = blank_plan(problem_, "torchrec_like");
    std::vector<double> memory(devices_), seconds(devices_);
    for (size_t t = 0; t < chosen.size(); ++t) {
      const Option& option = options_[t][chosen[t]];
      if (option.way == Way::table || option.way == Way::columns) continue;
      for (int d = 0; d < devices_; ++d) {
        memory[d] += option.piece.memory;
        seconds[d] += option.seconds;
      }
      place_on_all(option, plan.tables[t], plan);
    }
    std::vector<size_t> order;
    for (size_t t = 0; t < chosen.size(); ++t)
      if (options_[t][chosen[t]].way == Way::table || options_[t][chosen[t]].way == Way::columns)
        order.push_back(t);
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](size_t t) { return options_[t][chosen[t]].seconds; });
    for (const size_t t : order) {
      const Option& option = options_[t][chosen[t]];
      std::vector<int> of;
      for (int k = 0; k < option.pieces; ++k) {
        const int device = emptiest(option, memory, seconds, of);
        if (device < 0) return std::nullopt;
        of.push_back(device);
        memory[device] += option.piece.memory;
        seconds[device] += option.seconds;
      }
      if (option.way == Way::columns) {
        plan.tables[t].column_devices = of;
      } else {
        plan.tables[t].runs = {{plan.tables[t].rows, plan.path(FetchPath::at(of[0], devices_))}};
      }
    }
    for (int d = 0; d < devices_; ++d)
      if (memory[d] > limit(d)) return std::nullopt;
    return plan;
  }

  void place_on_all(const Option& option, TablePlacement& table, PlacementPlan& plan) const {
    if (option.way == Way::copies) {
      table.runs = {{table.rows, plan.path(FetchPath::everywhere(0, devices_))}};
      return;
    }
    for (int64_t k = 0; k < devices_; ++k)
      table.runs.push_back({(k + 1) * table.rows / devices_,
                            plan.path(FetchPath::at(static_cast<int>(k), devices_))});
  }

  double limit(int device) const {
    return static_cast<double>(problem_.cluster.devices[device].memory_bytes);
  }

  int emptiest(const Option& option, const std::vector<double>& memory,
               const std::vector<double>& seconds, const std::vector<int>& but) const {
    int best = -1;
    for (int d = 0; d < devices_; ++d) {
      if (memory[d] + option.piece.memory > limit(d) || std::ranges::count(but, d) > 0) continue;
      if (best < 0 || seconds[d] < seconds[best]) best = d;
    }
    return best;
  }

  const Problem& problem_;
  const int devices_;
  std::vector<std::vector<Option>> options_;  // [tables], the fastest first
};

}  // namespace

Result<Proposal> plan_torchrec_like(const Problem& problem) {
  auto plan = Planner(problem).best();
  if (!plan)
    return Status::BadRequest(
        "planner 'torchrec_like' finds no way in which tables, their rows or "
        "their columns fit the devices");
  Proposal proposal;
  proposal.plan = *std::move(plan);
  return proposal;
}

}  // namespace recmill::placement
