// SPDX-License-Identifier: Apache-2.0
#include "run/placement/run_placement.h"

#include <fmt/format.h>

#include <string>

#include "base/hash.h"
#include "base/paths.h"
#include "batch/feature_layout.h"
#include "placement/cost_model.h"
#include "placement_plan/plan_file.h"
#include "run/placement/placement_problem.h"
#include "table/table_shares.h"

namespace recmill::train {
namespace {

constexpr const char* kPlanKey = "placement.plan";
constexpr const char* kPlannerKey = "placement.planner";

template <typename T>
uint32_t checksum(const std::vector<T>& values, uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(values)), before);
}

/// A line for each thing that all ranks must have the same of.
std::string text_of(const PlacementPlan& plan) {
  std::string text;
  for (const FetchPath& path : plan.paths)
    text += fmt::format("a path of home {} and checksum {:08x}\n", path.home, checksum(path.from));
  for (const TablePlacement& table : plan.tables) {
    std::vector<int64_t> runs;
    for (const PlacedRun& run : table.runs) {
      runs.push_back(run.end);
      runs.push_back(run.path);
    }
    const uint32_t rows =
        checksum(table.listed_paths,
                 checksum(table.listed_rows, checksum(runs, checksum(table.column_devices))));
    text += fmt::format("table '{}' placed with checksum {:08x}{}\n", table.table, rows,
                        table.send_pooled ? ", its owners pool" : "");
  }
  return text;
}

Result<PlacementPlan> planned(const ResolvedRun& run, Files& files) {
  const placement::PlannerKind kind = run.options.placement.planner;
  AccessCounts counts = blank_counts(run);
  // Who pools, too, is decided by counts.
  if (placement::goes_by_counts(kind) || !run.options.train.deterministic) {
    RECMILL_ASSIGN_OR_RETURN(counts, placement_counts(run, files));
  }
  RECMILL_ASSIGN_OR_RETURN(const placement::Problem problem,
                           placement_problem(run, std::move(counts), kAnyMemory, files));
  auto proposal = placement::plan_placement(problem, kind, planner_options(run));
  if (!proposal.ok()) return proposal.status().at(kPlannerKey);
  return std::move(proposal->plan);
}

Result<PlacementPlan> plan_of_file(const ResolvedRun& run, Files& files) {
  const std::string& path = run.options.placement.plan;
  if (!files.exists(path))
    return Status::BadRequest(fmt::format("{}: there is no file {}", kPlanKey, whole_path(path)));
  auto plan = read_plan(files, path);
  if (!plan.ok()) return plan.status().at(kPlanKey);
  return plan;
}

/// Whether devices have the memory that the plan takes of them, as 'recmill plan' judges it. `plan`
/// is one for the run's tables and ranks.
Status check_device_memory(const ResolvedRun& run, const PlacementPlan& plan, const char* key,
                           Files& files) {
  const PlacementOptions& options = run.options.placement;
  if (options.device_memory_mib == 0 && options.cluster.empty()) return {};
  RECMILL_ASSIGN_OR_RETURN(const placement::Problem problem,
                           placement_problem(run, blank_counts(run), kAnyMemory, files));
  const std::string lacking = placement::rate(problem, plan).does_not_fit();
  if (lacking.empty()) return {};
  return Status::BadRequest(fmt::format("{}: the plan does not fit: {}", key, lacking));
}

/// Whether owners may pool the tables that the plan says it of. `plan` is one for the run's tables.
Status check_pooling(const ResolvedRun& run, const PlacementPlan& plan) {
  for (const TablePlacement& table : plan.tables) {
    if (table.send_pooled && run.options.train.deterministic)
      return Status::BadRequest(
          fmt::format("table '{}': its owners pool, which adds rows in another order; only where "
                      "train.deterministic is false",
                      table.table));
  }
  for (const FeatureSpec& feature : run.spec.features) {
    const TablePlacement& table = plan.tables[feature.table];
    if (table.send_pooled && !is_pooled(feature.pooling))
      return Status::BadRequest(
          fmt::format("table '{}': its owners pool, but feature '{}' takes rows as they are",
                      table.table, feature.name));
  }
  return {};
}

/// A planner that does not go by lookups would never plan anew.
Status check_replanning(const PlacementOptions& options) {
  if (options.replan_every == 0 || placement::goes_by_counts(options.planner)) return {};
  std::string others;
  for (const auto& [kind, name] : EnumNames<placement::PlannerKind>::names)
    if (placement::goes_by_counts(kind)) others += (others.empty() ? "" : ", ") + std::string(name);
  return Status::BadRequest(fmt::format(
      "placement.replan_every: the planner {} would place rows again as they are; those that go by "
      "lookups: {}",
      name_of(options.planner), others));
}

}  // namespace

bool has_plan_file(const RunOptions& options) {
  return options.embedding.store == StoreKind::placed && !options.placement.plan.empty();
}

Status place_tables(ResolvedRun& run, Files& files) {
  if (run.options.embedding.store != StoreKind::placed) return {};
  RECMILL_RETURN_IF_ERROR(check_replanning(run.options.placement));
  const bool of_file = has_plan_file(run.options);
  const char* const key = of_file ? kPlanKey : kPlannerKey;
  RECMILL_ASSIGN_OR_RETURN(PlacementPlan plan,
                           of_file ? plan_of_file(run, files) : planned(run, files));
  auto placed = table::PlacedTables::create(plan, run.spec.tables, run.ranks);
  if (!placed.ok()) return placed.status().at(key);
  RECMILL_RETURN_IF_ERROR(check_pooling(run, plan).at(key));
  RECMILL_RETURN_IF_ERROR(check_device_memory(run, plan, key, files));
  run.placed = *std::move(placed);
  run.plan_text = text_of(plan);
  run.plan = std::make_shared<const PlacementPlan>(std::move(plan));
  return {};
}

std::vector<table::TableShare> shares_of(const ResolvedRun& run, int rank) {
  if (run.options.embedding.store != StoreKind::placed)
    return table::shares_of(run.spec.tables, rank, run.ranks);
  RECMILL_CHECK(run.placed != nullptr, run.options.name);
  return run.placed->shares(rank);
}

store::ShardedOptions sharded_options(const ResolvedRun& run) {
  const PlacementOptions& options = run.options.placement;
  const bool copies_hot_rows =
      options.plan.empty() && options.planner == placement::PlannerKind::hot_cold;
  return {.dedup_fetch = options.dedup_fetch,
          .reduce = options.reduce,
          .one_call = options.one_call,
          .overlap = options.overlap,
          .share_rows = options.share_rows,
          // Inputs of the folder are hot by the rows that were copied.
          .hot_rows_everywhere = copies_hot_rows && run.hot_folder != nullptr};
}

}  // namespace recmill::train
