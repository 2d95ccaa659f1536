// SPDX-License-Identifier: Apache-2.0
#include "placement_plan/placement_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "schema/column_pieces.h"

namespace recmill {
namespace {

Status bad(const TablePlacement& table, const std::string& what) {
  return Status::BadRequest(fmt::format("table '{}': {}", table.table, what));
}

Status check_path(const FetchPath& path, size_t index, int devices) {
  const auto bad_path = [&](const std::string& what) {
    return Status::BadRequest(fmt::format("path {}: {}", index, what));
  };
  if (path.from.size() != static_cast<size_t>(devices))
    return bad_path(fmt::format("{} devices fetch by it, of {}", path.from.size(), devices));
  if (path.home < 0 || path.home >= devices)
    return bad_path(fmt::format("its home is device {} of {}", path.home, devices));
  for (int device = 0; device < devices; ++device) {
    const int from = path.from[device];
    if (from < 0 || from >= devices)
      return bad_path(fmt::format("device {} fetches from device {} of {}", device, from, devices));
    if (!path.has_copy(from))
      return bad_path(
          fmt::format("device {} fetches from device {}, which has no copy", device, from));
  }
  if (!path.has_copy(path.home))
    return bad_path(fmt::format("its home, device {}, has no copy", path.home));
  return {};
}

Status check_columns(const TablePlacement& table, int devices) {
  const int64_t groups = column_groups(table.dim);
  const auto pieces = static_cast<int64_t>(table.column_devices.size());
  if (!table.runs.empty() || !table.listed_rows.empty())
    return bad(table, "columns and rows are both placed");
  if (pieces > groups)
    return bad(table, fmt::format("{} pieces of columns, but dimension {} has {} groups of {}",
                                  pieces, table.dim, groups, kColumnGroup));
  std::vector<int> seen;
  for (const int device : table.column_devices) {
    if (device < 0 || device >= devices)
      return bad(table, fmt::format("columns on device {} of {}", device, devices));
    if (std::ranges::count(seen, device) > 0)
      return bad(table, fmt::format("device {} has two pieces of columns", device));
    seen.push_back(device);
  }
  return {};
}

Status check_runs(const TablePlacement& table, size_t paths) {
  int64_t begin = 0;
  for (const PlacedRun& run : table.runs) {
    if (run.end <= begin)
      return bad(table, fmt::format("row {}: ranges overlap or are empty", run.end));
    if (run.path < 0 || run.path >= static_cast<int>(paths))
      return bad(table, fmt::format("row {}: path {} of {}", begin, run.path, paths));
    begin = run.end;
  }
  if (begin < table.rows)
    return bad(table,
               fmt::format("row {}: no range has it; the table has {} rows", begin, table.rows));
  if (begin > table.rows)
    return bad(table, fmt::format("row {}: a range goes beyond the table's {} rows", table.rows,
                                  table.rows));
  return {};
}

Status check_listed(const TablePlacement& table, size_t paths) {
  if (table.listed_rows.size() != table.listed_paths.size())
    return bad(table, fmt::format("{} listed rows but {} paths", table.listed_rows.size(),
                                  table.listed_paths.size()));
  int64_t last = -1;
  for (size_t i = 0; i < table.listed_rows.size(); ++i) {
    const int64_t row = table.listed_rows[i];
    if (row <= last) return bad(table, fmt::format("row {}: listed twice, or not in order", row));
    if (row >= table.rows)
      return bad(table, fmt::format("row {}: the table has {} rows", row, table.rows));
    if (table.listed_paths[i] < 0 || table.listed_paths[i] >= static_cast<int64_t>(paths))
      return bad(table, fmt::format("row {}: path {} of {}", row, table.listed_paths[i], paths));
    last = row;
  }
  return {};
}

}  // namespace

FetchPath FetchPath::at(int home, int devices) {
  return {home, std::vector<int>(devices, home)};
}

FetchPath FetchPath::everywhere(int home, int devices) {
  FetchPath path{home, {}};
  for (int device = 0; device < devices; ++device) path.from.push_back(device);
  return path;
}

int FetchPath::copies() const {
  int count = 0;
  for (size_t device = 0; device < from.size(); ++device)
    count += from[device] == static_cast<int>(device);
  return count;
}

int PlacementPlan::path(const FetchPath& wanted) {
  const auto found = std::ranges::find(paths, wanted);
  if (found == paths.end()) {
    paths.push_back(wanted);
    return static_cast<int>(paths.size()) - 1;
  }
  return static_cast<int>(found - paths.begin());
}

Status check_plan(const PlacementPlan& plan, std::span<const TableSpec> tables, int devices) {
  if (plan.devices != devices)
    return Status::BadRequest(
        fmt::format("the plan is for {} devices; there are {}", plan.devices, devices));
  for (size_t p = 0; p < plan.paths.size(); ++p)
    RECMILL_RETURN_IF_ERROR(check_path(plan.paths[p], p, devices));
  if (plan.tables.size() != tables.size())
    return Status::BadRequest(fmt::format("the plan is for {} tables; the model has {}",
                                          plan.tables.size(), tables.size()));
  for (size_t t = 0; t < tables.size(); ++t) {
    const TablePlacement& table = plan.tables[t];
    if (table.table != tables[t].name)
      return bad(table, fmt::format("the model has table '{}' in its place", tables[t].name));
    if (table.rows != tables[t].rows || table.dim != tables[t].dim)
      return bad(table, fmt::format("the plan is for {} rows of {}; the model's has {} of {}",
                                    table.rows, table.dim, tables[t].rows, tables[t].dim));
    if (!table.column_devices.empty()) {
      RECMILL_RETURN_IF_ERROR(check_columns(table, devices));
      continue;
    }
    RECMILL_RETURN_IF_ERROR(check_runs(table, plan.paths.size()));
    RECMILL_RETURN_IF_ERROR(check_listed(table, plan.paths.size()));
  }
  return {};
}

}  // namespace recmill
