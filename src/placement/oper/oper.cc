// SPDX-License-Identifier: Apache-2.0
// OPER's planner (section 4): partition, balance, duplicate; then, as duplicates take away the hot
// rows that balanced the devices, partition and balance what is left once more.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "placement/build_plan.h"
#include "placement/cost_model.h"
#include "placement/few/place_few.h"
#include "placement/memory_budget.h"
#include "placement/oper/balance.h"
#include "placement/oper/copy_shares.h"
#include "placement/oper/duplicate.h"
#include "placement/oper/targets.h"
#include "placement/planners.h"

namespace recmill::placement {
namespace {

/// Copied partitions take so much of the memory for copies, at most.
constexpr double kCopyGrain = 0.001;

/// Where copies and the rest are placed at once: ranges are so much finer, as what one of them is
/// too large takes away copies.
constexpr double kRangeGrain = 8;

std::vector<FetchPath> home_paths(const std::vector<int>& homes, int devices) {
  std::vector<FetchPath> paths;
  for (const int home : homes) paths.push_back(FetchPath::at(home, devices));
  return paths;
}

std::vector<Load> loads_of(std::span<const Partition> partitions) {
  std::vector<Load> loads;
  for (const Partition& partition : partitions) loads.push_back(partition.load);
  return loads;
}

struct Placement {
  std::vector<Partition> partitions;
  std::vector<FetchPath> paths;  // beside
};

class Oper {
 public:
  Oper(const Problem& problem, const PlannerOptions& options, std::vector<double> budgets)
      : problem_(problem),
        options_(options),
        budgets_(std::move(budgets)),
        orders_(hot_orders(problem.counts)) {}

  Result<Proposal> plan() {
    Thresholds thresholds = options_.thresholds;
    for (int64_t halvings = 0;; ++halvings) {
      RECMILL_RETURN_IF_ERROR(place(thresholds));
      if (placed_all_ || degree_ >= options_.balance || halvings == options_.refinements) break;
      thresholds.access /= 2;
      thresholds.memory /= 2;
    }
    say_what_limits(thresholds);
    std::vector<PlacedPartition> placed;
    for (const Placement* part : {&copied_, &rest_})
      for (size_t p = 0; p < part->partitions.size(); ++p)
        placed.push_back({&part->partitions[p], &part->paths[p]});
    proposal_.plan = build_plan(problem_, "oper", placed);
    return std::move(proposal_);
  }

 private:
  Status place(const Thresholds& thresholds) {
    copied_ = {};
    taken_.clear();
    copies_costs_ = DeviceCosts(problem_);
    all_.emplace(problem_, orders_, finer(thresholds));
    const Partitioning& all = *all_;
    proposal_.access_bounded_share = all.access_bounded_share();
    proposal_.access_bounded_memory = all.access_bounded_memory();
    hottest_share_ = all.hottest_row() / std::max(all.all().fetched, 1e-300);
    placed_all_ = false;
    if (options_.extra_memory > 0 && problem_.devices() > 1)
      RECMILL_RETURN_IF_ERROR(duplicate(all));
    if (placed_all_) return {};
    if (copied_.partitions.empty()) {
      left_.emplace(problem_, orders_, thresholds);
    } else {
      left_.emplace(problem_, remaining_orders(), thresholds, taken_);
    }
    RECMILL_RETURN_IF_ERROR(balance_rest(*left_));
    proposal_.partitions =
        static_cast<int64_t>(copied_.partitions.size() + rest_.partitions.size());
    return {};
  }

  // Of partitions that may be copied.
  Thresholds finer(Thresholds thresholds) const {
    if (options_.extra_memory <= 0 || problem_.devices() < 2) return thresholds;
    const double extra = options_.extra_memory * static_cast<double>(problem_.total_bytes());
    thresholds.list_dense_alone = false;
    if (!is_uniform(problem_.cluster)) thresholds.memory /= kRangeGrain;
    thresholds.listed_bytes = kCopyGrain * extra / problem_.devices();
    thresholds.listed_share =
        std::max(thresholds.listed_share, 1.5 * options_.extra_memory / (problem_.devices() - 1));
    return thresholds;
  }

  Status duplicate(const Partitioning& all) {
    const std::vector<Load> loads = loads_of(all.partitions());
    DeviceCosts costs(problem_);
    RECMILL_ASSIGN_OR_RETURN(const auto single, memory_budgets(problem_, kBalanceSlack));
    RECMILL_ASSIGN_OR_RETURN(const Targets targets, targets_for(all, costs, single));
    const std::vector<int> homes = balance(all.partitions(), targets);
    std::vector<FetchPath> paths = home_paths(homes, problem_.devices());
    if (problem_.training) {
      const double extra = options_.extra_memory * static_cast<double>(problem_.total_bytes());
      std::vector<Load> listed;
      for (const Partition& partition : all.partitions())
        if (partition.access_bounded()) listed.push_back(partition.load);
      for (const size_t p : duplicate_for_training(problem_, listed, extra))
        paths[p] = FetchPath::everywhere(homes[p], problem_.devices());
    } else {
      const auto listed =
          static_cast<size_t>(std::ranges::count_if(all.partitions(), &Partition::access_bounded));
      RECMILL_RETURN_IF_ERROR(copy_for_inference(loads, listed, paths));
    }
    if (is_uniform(problem_.cluster)) even_out(loads, paths);
    take_copies(all, paths);
    if (placed_all_) take_rest(all, paths);
    return {};
  }

  // Algorithm 1; among unequal devices the linear program where that is faster by more than what
  // both are wrong by, and then it says where all rows are. `paths`: homes of all loads, of which
  // the first `listed` may have copies.
  Status copy_for_inference(const std::vector<Load>& loads, size_t listed,
                            std::vector<FetchPath>& paths) {
    DeviceCosts costs(problem_);
    for (size_t p = 0; p < paths.size(); ++p) costs.add(loads[p], paths[p]);
    std::vector<double> spare;
    for (int d = 0; d < problem_.devices(); ++d)
      spare.push_back(std::max(budgets_[d] - costs.memory(d), 0.0));
    std::vector<FetchPath> listed_paths(paths.begin(),
                                        paths.begin() + static_cast<int64_t>(listed));
    duplicate_for_inference(problem_, std::span(loads).first(listed), listed_paths, spare, costs);
    std::ranges::move(listed_paths, paths.begin());
    if (is_uniform(problem_.cluster) || problem_.devices() > kMostSharingDevices) return {};
    RECMILL_ASSIGN_OR_RETURN(SharedCopies shared, share_copies(problem_, loads, listed, budgets_));
    DeviceCosts of_shared(problem_);
    for (size_t p = 0; p < loads.size(); ++p) of_shared.add(loads[p], shared.paths[p]);
    if (of_shared.largest_seconds() > 0.99 * costs.largest_seconds()) return {};
    placed_all_ = true;
    degree_ = shared.seconds / of_shared.largest_seconds();
    paths = std::move(shared.paths);
    return {};
  }

  // Where devices ran out of memory some have copies that others have not. Among equal devices
  // these unbalance pairs for little: all have a copy, as long as there is memory for it, or one.
  void even_out(const std::vector<Load>& loads, std::vector<FetchPath>& paths) const {
    DeviceCosts costs(problem_);
    std::vector<size_t> some;
    for (size_t p = 0; p < paths.size(); ++p) {
      const int copies = paths[p].copies();
      if (copies > 1 && copies < problem_.devices()) {
        some.push_back(p);
        paths[p] = FetchPath::at(paths[p].home, problem_.devices());
      }
      costs.add(loads[p], paths[p]);
    }
    double spare = 0;
    for (int d = 0; d < problem_.devices(); ++d) spare += budgets_[d] - costs.memory(d);
    std::ranges::stable_sort(some, std::greater<>(), [&](size_t p) {
      return loads[p].fetched / std::max(loads[p].memory, 1e-300);
    });
    for (const size_t p : some) {
      spare -= loads[p].memory * (problem_.devices() - 1);
      if (spare < 0) return;
      paths[p] = FetchPath::everywhere(paths[p].home, problem_.devices());
    }
  }

  void take_copies(const Partitioning& all, const std::vector<FetchPath>& paths) {
    for (const TableCounts& counts : problem_.counts.tables)
      taken_.emplace_back(counts.hot_rows.size());
    for (size_t p = 0; p < paths.size(); ++p) {
      if (paths[p].copies() < 2) continue;
      const Partition& partition = all.partitions()[p];
      copied_.partitions.push_back(partition);
      copied_.paths.push_back(paths[p]);
      copies_costs_.add(partition.load, paths[p]);
      for (const int64_t i : partition.listed) taken_[partition.table][i] = true;
    }
  }

  void take_rest(const Partitioning& all, const std::vector<FetchPath>& paths) {
    rest_ = {};
    for (size_t p = 0; p < paths.size(); ++p) {
      if (paths[p].copies() > 1) continue;
      rest_.partitions.push_back(all.partitions()[p]);
      rest_.paths.push_back(paths[p]);
    }
    proposal_.partitions = static_cast<int64_t>(paths.size());
  }

  std::vector<HotOrder> remaining_orders() const {
    std::vector<HotOrder> remaining(orders_.size());
    for (size_t t = 0; t < orders_.size(); ++t)
      for (const int64_t i : orders_[t])
        if (!taken_[t][i]) remaining[t].push_back(i);
    return remaining;
  }

  Result<Targets> targets_for(const Partitioning& partitioning, const DeviceCosts& placed,
                              std::span<const double> budgets) const {
    return find_targets(problem_, partitioning.all(), partitioning.access_bounded(), placed,
                        budgets);
  }

  Status balance_rest(const Partitioning& partitioning) {
    rest_.partitions = partitioning.partitions();
    RECMILL_ASSIGN_OR_RETURN(const Targets targets,
                             targets_for(partitioning, copies_costs_, budgets_));
    const std::vector<int> homes = balance(rest_.partitions, targets);
    const std::vector<Load> loads = loads_of(rest_.partitions);
    rest_.paths = home_paths(homes, problem_.devices());
    if (std::ssize(loads) <= kFewLoads) {
      RECMILL_ASSIGN_OR_RETURN(rest_.paths,
                               place_few(problem_, loads, budgets_, false, homes, copies_costs_));
    }
    DeviceCosts costs = copies_costs_;
    for (size_t p = 0; p < loads.size(); ++p) costs.add(loads[p], rest_.paths[p]);
    degree_ = degree_of(costs, targets);
    return {};
  }

  // How near devices are to their targets: those of equal ones are equal lookups and memory.
  double degree_of(const DeviceCosts& costs, const Targets& targets) const {
    if (!is_uniform(problem_.cluster)) return targets.seconds / costs.largest_seconds();
    std::vector<double> memory, lookups;
    for (int d = 0; d < problem_.devices(); ++d) {
      memory.push_back(costs.memory(d) / budgets_[d]);
      lookups.push_back(costs.looked_up(d));
    }
    return std::min(balance_of(memory).degree(), balance_of(lookups).degree());
  }

  void say_what_limits(const Thresholds& thresholds) {
    if (thresholds.access != options_.thresholds.access)
      proposal_.notes.push_back(fmt::format("thresholds were halved to {:.4g} % for the balance",
                                            100 * thresholds.access));
    if (degree_ >= options_.balance) return;
    std::string note = fmt::format("the degree of balance is {:.2f} %, of {:.2f} % wanted",
                                   100 * degree_, 100 * options_.balance);
    if (hottest_share_ * problem_.devices() > 1)
      note += fmt::format(
          ": one row takes {:.2f} % of all fetches, more than a device's share of {:.2f} %",
          100 * hottest_share_, 100.0 / problem_.devices());
    proposal_.notes.push_back(note);
  }

  const Problem& problem_;
  const PlannerOptions& options_;
  const std::vector<double> budgets_;
  const std::vector<HotOrder> orders_;
  std::vector<std::vector<bool>> taken_;
  std::optional<Partitioning> all_, left_;  // before and after duplication
  Placement copied_, rest_;                 // of their partitions
  DeviceCosts copies_costs_{problem_};
  Proposal proposal_;
  bool placed_all_ = false;  // copies and the rest at once
  double degree_ = 0, hottest_share_ = 0;
};

/// Times that copies are made fewer because a device is short of memory, before none are made.
constexpr int kFewerCopies = 6;

/// Bytes that the plan takes of the device that is short of the most beyond what it has.
double lacking_bytes(const Problem& problem, const PlacementPlan& plan) {
  const DeviceCosts costs = costs_of(problem, plan);
  double lacking = 0;
  for (int d = 0; d < problem.devices(); ++d) {
    const auto limit = static_cast<double>(problem.cluster.devices[d].memory_bytes);
    lacking = std::max(lacking, costs.memory(d) - limit);
  }
  return lacking;
}

Result<Proposal> plan_within(const Problem& problem, const PlannerOptions& options) {
  RECMILL_ASSIGN_OR_RETURN(auto budgets,
                           memory_budgets(problem, std::max(options.extra_memory, kBalanceSlack)));
  return Oper(problem, options, std::move(budgets)).plan();
}

}  // namespace

// Partitions are balanced, not equal: where copies take all the memory that there is, a device may
// be short of that of some rows. Then there are to be fewer copies.
Result<Proposal> plan_oper(const Problem& problem, const PlannerOptions& options) {
  const double limits = memory_of_devices(problem);
  const auto rows = static_cast<double>(problem.total_bytes());
  PlannerOptions within = options;
  within.extra_memory = std::clamp(limits / rows - 1, 0.0, options.extra_memory);
  for (int fewer = 0;; ++fewer) {
    auto proposal = plan_within(problem, within);
    const double lacking = proposal.ok() ? lacking_bytes(problem, proposal->plan) : limits;
    if (lacking == 0 || within.extra_memory == 0) {
      if (proposal.ok() && within.extra_memory < 0.99 * options.extra_memory)
        proposal->notes.push_back(fmt::format(
            "copies take {:.2f} % more memory at most, of {:.2f} % wanted: devices have no more",
            100 * within.extra_memory, 100 * options.extra_memory));
      return proposal;
    }
    within.extra_memory -= 2 * problem.devices() * lacking / rows;
    if (within.extra_memory < 0 || fewer == kFewerCopies) within.extra_memory = 0;
  }
}

}  // namespace recmill::placement
