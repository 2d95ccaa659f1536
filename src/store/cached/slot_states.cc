// SPDX-License-Identifier: Apache-2.0
#include "store/cached/slot_states.h"

#include <algorithm>
#include <utility>

namespace recmill::store {

SlotStates::SlotStates(const ModelSpec& model, const SlotTables& tables, uint64_t seed,
                       std::span<const int64_t> slots, std::vector<int64_t> copied, int32_t rank)
    : tables_(tables), copied_(std::move(copied)), rank_(rank) {
  copied_.resize(static_cast<size_t>(tables.count()));
  names_.reserve(static_cast<size_t>(tables.count()));
  for (int k = 0; k < tables.count(); ++k) {
    names_.emplace_back(model.tables, seed, slots[k]);
    states_.emplace_back(static_cast<size_t>(slots[k]));
    frozen_.push_back(model.tables[tables.first_table(k)].frozen);
  }
}

void SlotStates::fill(const RowInSlot& row) {
  const int k = slot_table_of(row), table = tables_.table_of(row.row);
  RECMILL_CHECK(states_[k][place(row)] == 0, tables_.name_of(row.row));
  states_[k][place(row)] = kFull;
  names_[k].name(place(row), table, row.row - tables_.begin(table));
}

void SlotStates::empty(const RowInSlot& row) {
  check_full(row);
  states_[slot_table_of(row)][place(row)] = 0;
}

void SlotStates::note_updated(const RowInSlot& row) {
  check_full(row);
  states_[slot_table_of(row)][place(row)] = kFull | kUpdated | kChanged;
  any_changed_ = true;
}

void SlotStates::note_updated(std::span<const RowInSlot> uses) {
  for (const RowInSlot& row : uses)
    if (!frozen_[slot_table_of(row)]) note_updated(row);
}

template <typename Wanted>
std::vector<RowInSlot> SlotStates::find(const Wanted& wanted) const {
  std::vector<RowInSlot> rows;
  for (size_t k = 0; k < states_.size(); ++k) {
    for (int64_t slot = 0; slot < std::ssize(states_[k]); ++slot) {
      if ((states_[k][slot] & kFull) == 0) continue;
      const int64_t row = tables_.begin(names_[k].table(slot)) + names_[k].row(slot);
      if (!wanted(row, states_[k][slot])) continue;
      const bool everywhere = slot < copied_[k];
      rows.push_back({row, static_cast<int32_t>(everywhere ? slot : slot - copied_[k]),
                      everywhere ? kEverywhere : rank_});
    }
  }
  std::ranges::sort(rows);
  return rows;
}

std::vector<RowInSlot> SlotStates::take_changed() {
  if (!any_changed_.exchange(false)) return {};
  auto rows = find([](int64_t, uint8_t state) { return (state & kChanged) != 0; });
  for (const RowInSlot& row : rows) states_[slot_table_of(row)][place(row)] &= ~kChanged;
  return rows;
}

std::vector<RowInSlot> SlotStates::in_slots(int64_t first, int64_t end) const {
  return find([&](int64_t row, uint8_t) { return row >= first && row < end; });
}

}  // namespace recmill::store
