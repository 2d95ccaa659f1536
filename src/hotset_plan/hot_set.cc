// SPDX-License-Identifier: Apache-2.0
#include "hotset_plan/hot_set.h"

#include <fmt/format.h>

namespace recmill {
namespace {

Status check_table(const HotTable& table, const TableSpec& spec) {
  if (table.table != spec.name)
    return Status::BadRequest(
        fmt::format("hot set: table '{}' is where the model has '{}'", table.table, spec.name));
  if (table.rows != spec.rows)
    return Status::BadRequest(fmt::format("hot set: table '{}' has {} rows; the model's has {}",
                                          spec.name, table.rows, spec.rows));
  if (table.all_hot && !table.hot_rows.empty())
    return Status::BadRequest(
        fmt::format("hot set: table '{}' is all hot and lists rows", spec.name));
  int64_t last = -1;
  for (const int64_t row : table.hot_rows) {
    if (row <= last || row >= spec.rows)
      return Status::BadRequest(fmt::format("hot set: table '{}', row {}: {}", spec.name, row,
                                            row <= last ? "rows do not ascend" : "is not in it"));
    last = row;
  }
  return {};
}

}  // namespace

int64_t HotSet::hot() const {
  int64_t rows = 0;
  for (const HotTable& table : tables) rows += table.hot();
  return rows;
}

Status check_hot_set(const HotSet& set, std::span<const TableSpec> tables) {
  if (set.tables.size() != tables.size())
    return Status::BadRequest(fmt::format("hot set: is of {} tables; the model has {}",
                                          set.tables.size(), tables.size()));
  for (size_t t = 0; t < tables.size(); ++t)
    RECMILL_RETURN_IF_ERROR(check_table(set.tables[t], tables[t]));
  return {};
}

HotRows::HotRows(const HotSet& set) {
  for (const HotTable& table : set.tables) {
    std::vector<uint64_t>& bits = bits_.emplace_back();
    if (table.all_hot) continue;
    bits.resize(static_cast<size_t>(table.rows + 63) / 64);
    for (const int64_t row : table.hot_rows)
      bits[static_cast<size_t>(row) / 64] |= uint64_t{1} << (row % 64);
  }
}

}  // namespace recmill
