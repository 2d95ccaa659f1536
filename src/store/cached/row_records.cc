// SPDX-License-Identifier: Apache-2.0
#include "store/cached/row_records.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace recmill::store {
namespace {

/// So that a home may read numbers in place, and a GPU as many at a time as all records allow.
size_t alignment_of(const table::RowRecord& record) {
  const auto bytes = static_cast<size_t>(record.bytes());
  return std::clamp<size_t>(size_t{1} << std::countr_zero(bytes), 4, 16);
}

}  // namespace

RowRecords::RowRecords(const SlotTables& tables, std::span<const table::RowRecord> records,
                       std::span<const RowInSlot> rows) {
  rows_.reserve(rows.size());
  places_.reserve(rows.size());
  size_t at = 0;
  for (const RowInSlot& row : rows) {
    const bool same = !tables_.empty() && row.row < tables.begin(tables_.back().table + 1);
    if (!same) {
      const int table = tables.table_of(row.row);
      const size_t alignment = alignment_of(records[table]);
      at = (at + alignment - 1) / alignment * alignment;
      tables_.push_back({table, rows_.size(), 0, at, 0});
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

RowRecords RowRecords::changed_since(const RowRecords& before, const SlotTables& tables,
                                     std::span<const table::RowRecord> records,
                                     std::span<const RowInSlot> rows) const {
  std::vector<RowInSlot> changed;
  std::vector<size_t> from;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto bytes = static_cast<size_t>(records[tables.table_of(rows[i].row)].bytes());
    if (std::memcmp(record(i), before.record(i), bytes) == 0) continue;
    changed.push_back(rows[i]);
    from.push_back(i);
  }
  RowRecords of(tables, records, changed);
  for (size_t i = 0; i < changed.size(); ++i)
    std::memcpy(of.record(i), record(from[i]),
                static_cast<size_t>(records[tables.table_of(changed[i].row)].bytes()));
  return of;
}

}  // namespace recmill::store
