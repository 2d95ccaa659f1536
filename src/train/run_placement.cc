// SPDX-License-Identifier: Apache-2.0
#include "train/run_placement.h"

#include <fmt/format.h>

#include <string>

#include "base/hash.h"
#include "placement_plan/plan_file.h"
#include "table/table_shares.h"

namespace recmill::train {
namespace {

/// Rank r holds rows [r rows / ranks, (r + 1) rows / ranks) of each table.
PlacementPlan equal_ranges(std::span<const TableSpec> tables, int ranks) {
  PlacementPlan plan{"equal ranges of rows", ranks, {}, {}};
  for (const TableSpec& spec : tables) {
    TablePlacement table{spec.name, spec.rows, spec.dim, {}, {}, {}, {}};
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t end = (rank + 1) * spec.rows / ranks;
      if (end > rank * spec.rows / ranks)
        table.runs.push_back({end, plan.path(FetchPath::at(static_cast<int>(rank), ranks))});
    }
    plan.tables.push_back(std::move(table));
  }
  return plan;
}

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
    text += fmt::format("table '{}' placed with checksum {:08x}\n", table.table, rows);
  }
  return text;
}

}  // namespace

bool has_plan_file(const RunOptions& options) {
  return options.embedding.store == preprocess::StoreKind::placed &&
         !options.placement.plan.empty();
}

Status place_tables(ResolvedRun& run, Files& files) {
  constexpr const char* kKey = "placement.plan";
  if (run.options.embedding.store != preprocess::StoreKind::placed) return {};
  PlacementPlan plan;
  if (has_plan_file(run.options)) {
    auto read = read_plan(files, run.options.placement.plan);
    if (!read.ok()) return read.status().at(kKey);
    plan = *std::move(read);
    for (const TablePlacement& table : plan.tables) {
      if (!table.send_pooled) continue;
      return Status::BadRequest(
          fmt::format("{}: table '{}' sends pooled rows, whose sums are added in another order",
                      kKey, table.table));
    }
  } else {
    plan = equal_ranges(run.spec.tables, run.ranks);
  }
  auto placed = table::PlacedTables::create(plan, run.spec.tables, run.ranks);
  if (!placed.ok()) return placed.status().at(kKey);
  run.placed = *std::move(placed);
  run.plan_text = text_of(plan);
  return {};
}

std::vector<table::TableShare> shares_of(const ResolvedRun& run, int rank) {
  if (run.options.embedding.store != preprocess::StoreKind::placed)
    return table::shares_of(run.spec.tables, rank, run.ranks);
  RECMILL_CHECK(run.placed != nullptr, run.options.name);
  return run.placed->shares(rank);
}

store::PlacedOptions placed_options(const ResolvedRun& run) {
  return {run.options.placement.dedup_fetch, run.options.placement.reduce};
}

}  // namespace recmill::train
