// SPDX-License-Identifier: Apache-2.0
#include "lookahead_plan/slot_tables.h"

#include <algorithm>

namespace recmill {
namespace {

bool share_slots(const TableSpec& a, const TableSpec& b) {
  return a.dim == b.dim && a.precision == b.precision && a.frozen == b.frozen &&
         a.optimizer == b.optimizer;
}

}  // namespace

SlotTables::SlotTables(const ModelSpec& model) : begins_(1, 0) {
  for (const TableSpec& table : model.tables) {
    const auto same = std::ranges::find_if(
        firsts_, [&](int first) { return share_slots(model.tables[first], table); });
    slot_tables_.push_back(static_cast<int>(same - firsts_.begin()));
    if (same == firsts_.end()) firsts_.push_back(static_cast<int>(names_.size()));
    names_.push_back(table.name);
    frozen_.push_back(table.frozen);
    begins_.push_back(begins_.back() + table.rows);
  }
}

int SlotTables::table_of(int64_t row) const {
  return static_cast<int>(std::ranges::upper_bound(begins_, row) - begins_.begin()) - 1;
}

std::string SlotTables::name_of(int64_t row) const {
  const int table = table_of(row);
  return names_[static_cast<size_t>(table)] + ":" + std::to_string(row - begin(table));
}

int64_t SlotTables::rows_of(int slot_table) const {
  int64_t rows = 0;
  for (size_t t = 0; t < slot_tables_.size(); ++t)
    if (slot_tables_[t] == slot_table) rows += begins_[t + 1] - begins_[t];
  return rows;
}

}  // namespace recmill
