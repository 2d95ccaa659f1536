// SPDX-License-Identifier: Apache-2.0
#include "store/cached/slots.h"

#include <algorithm>
#include <utility>

namespace recmill::store {

RowRecords::RowRecords(const SlotTables& tables, std::span<const table::RowRecord> records,
                       std::span<const RowInSlot> rows) {
  rows_.reserve(rows.size());
  places_.reserve(rows.size());
  size_t at = 0;
  for (const RowInSlot& row : rows) {
    const bool same = !tables_.empty() && row.row < tables.begin(tables_.back().table + 1);
    if (!same) {
      at = (at + 3) / 4 * 4;  // where a home may read a number
      tables_.push_back({tables.table_of(row.row), rows_.size(), 0, at, 0});
    }
    OfTable& table = tables_.back();
    const auto size = static_cast<size_t>(records[table.table].bytes());
    rows_.push_back(row.row - tables.begin(table.table));
    places_.push_back(at);
    ++table.count;
    table.bytes += size;
    at += size;
  }
  bytes_.resize(at);
}

std::vector<table::FetchedRows> RowRecords::to_fetch() {
  std::vector<table::FetchedRows> lists;
  for (const OfTable& of : tables_)
    lists.push_back({of.table, std::span(rows_).subspan(of.first, of.count),
                     std::span(bytes_).subspan(of.begin, of.bytes)});
  return lists;
}

std::vector<table::PutRows> RowRecords::to_put() const {
  std::vector<table::PutRows> lists;
  for (const OfTable& of : tables_)
    lists.push_back({of.table, std::span(rows_).subspan(of.first, of.count),
                     std::span(bytes_).subspan(of.begin, of.bytes)});
  return lists;
}

ModelSpec Slots::inner_model(const ModelSpec& model, const SlotTables& tables,
                             std::span<const int64_t> slots) {
  ModelSpec inner = model;
  for (size_t t = 0; t < inner.tables.size(); ++t) {
    inner.tables[t].name = "slots of " + inner.tables[t].name;
    inner.tables[t].rows = slots[tables.slot_table_of(static_cast<int>(t))];
  }
  for (FeatureSpec& feature : inner.features) feature.same_ids_as = -1;  // its slots are its own
  return inner;
}

std::vector<table::EmbeddingTable> Slots::inner_tables(const ModelSpec& inner, uint64_t seed,
                                                       std::span<const table::TableShare> shares) {
  std::vector<table::EmbeddingTable> made;
  for (size_t t = 0; t < inner.tables.size(); ++t)
    made.push_back(table::EmbeddingTable::without_rows(inner.tables[t], seed, shares[t]));
  return made;
}

std::vector<int> Slots::memory_of(const SlotTables& tables) {
  std::vector<int> first;
  for (int t = 0; t < tables.tables(); ++t)
    first.push_back(tables.first_table(tables.slot_table_of(t)));
  return first;
}

Status Slots::allocate(const SlotTables& tables, std::span<table::EmbeddingTable> inner,
                       HostRows* host) {
  const std::vector<int> first = memory_of(tables);
  for (size_t t = 0; t < inner.size(); ++t) {
    table::TableRoom room;
    if (host != nullptr) {
      RECMILL_ASSIGN_OR_RETURN(room.records, host->allocate(t));
    }
    const auto& shared = inner[first[t]];
    if (static_cast<size_t>(first[t]) < t) room = {shared.rows().data, shared.rows().row_state};
    RECMILL_RETURN_IF_ERROR(inner[t].allocate(nullptr, room));
  }
  return {};
}

Slots::Slots(const ModelSpec& model, const SlotTables& tables, uint64_t seed, RankTables& inner,
             std::vector<int64_t> copied)
    : tables_(tables),
      inner_(inner),
      copied_(std::move(copied)),
      rank_(inner.tables[0].share().rank()) {
  copied_.resize(static_cast<size_t>(tables.count()));
  names_.reserve(static_cast<size_t>(tables.count()));
  for (int k = 0; k < tables.count(); ++k) {
    const table::EmbeddingTable& table = inner.tables[tables.first_table(k)];
    const int64_t slots = table.share().slots();
    records_.emplace_back(table.spec());
    names_.emplace_back(model.tables, seed, slots);
    states_.emplace_back(static_cast<size_t>(slots));
    frozen_.push_back(table.spec().frozen);
  }
  for (int t = 0; t < tables.tables(); ++t) inner.names.push_back(&names_[tables.slot_table_of(t)]);
}

void Slots::fill(const RowInSlot& row, const std::byte* record, bool updated) {
  const int k = slot_table_of(row), table = tables_.table_of(row.row);
  RECMILL_CHECK(states_[k][place(row)] == 0, tables_.name_of(row.row));
  states_[k][place(row)] = kFull;
  names_[k].name(place(row), table, row.row - tables_.begin(table));
  write(row, record, updated);
}

void Slots::write(const RowInSlot& row, const std::byte* record, bool updated) {
  const int k = slot_table_of(row);
  check_full(row);
  records_[k].unpack(record, storage(k), place(row));
  if (!updated) return;
  states_[k][place(row)] = kFull | kUpdated | kChanged;
  any_changed_ = true;
}

void Slots::copy_out(const RowInSlot& row, std::byte* record) const {
  const int k = slot_table_of(row);
  check_full(row);
  records_[k].pack(storage(k), place(row), record);
}

void Slots::empty(const RowInSlot& row) {
  check_full(row);
  states_[slot_table_of(row)][place(row)] = 0;
}

void Slots::note_updated(std::span<const RowInSlot> uses) {
  for (const RowInSlot& row : uses) {
    const int k = slot_table_of(row);
    if (frozen_[k]) continue;
    check_full(row);
    states_[k][place(row)] = kFull | kUpdated | kChanged;
    any_changed_ = true;
  }
}

template <typename Wanted>
std::vector<RowInSlot> Slots::find(const Wanted& wanted) const {
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

std::vector<RowInSlot> Slots::take_changed() {
  if (!any_changed_.exchange(false)) return {};
  auto rows = find([](int64_t, uint8_t state) { return (state & kChanged) != 0; });
  for (const RowInSlot& row : rows) states_[slot_table_of(row)][place(row)] &= ~kChanged;
  return rows;
}

std::vector<RowInSlot> Slots::in_slots(int64_t first, int64_t end) const {
  return find([&](int64_t row, uint8_t) { return row >= first && row < end; });
}

}  // namespace recmill::store
