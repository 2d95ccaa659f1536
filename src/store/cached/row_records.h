// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lookahead_plan/lookahead_step.h"
#include "lookahead_plan/slot_tables.h"
#include "table/home/row_home.h"
#include "table/row_record.h"

namespace recmill::store {

/// Some rows, and room for their records, as a home takes them.
class RowRecords {
 public:
  /// `rows` ascend. `records` [tables] are the shapes.
  RowRecords(const SlotTables& tables, std::span<const table::RowRecord> records,
             std::span<const RowInSlot> rows);

  std::byte* record(size_t i) { return bytes_.data() + places_[i]; }
  const std::byte* record(size_t i) const { return bytes_.data() + places_[i]; }
  /// Those whose records are others than in `before`, which has the same `rows`: a home makes the
  /// rows that nobody has put, so rows that are written as they are cost nothing there.
  RowRecords changed_since(const RowRecords& before, const SlotTables& tables,
                           std::span<const table::RowRecord> records,
                           std::span<const RowInSlot> rows) const;
  std::vector<table::FetchedRows> to_fetch();
  std::vector<table::PutRows> to_put() const;

  /// Records of a table's rows, one behind the other.
  struct OfTable {
    int table = 0;
    size_t first = 0, count = 0;  // of the rows
    size_t begin = 0, bytes = 0;  // of bytes()
  };
  /// Ascending.
  std::span<const OfTable> tables() const { return tables_; }
  /// Of all records.
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// [rows]: of their tables.
  std::span<const int64_t> rows() const { return rows_; }

 private:
  std::vector<int64_t> rows_;  // of their tables
  std::vector<size_t> places_;
  std::vector<OfTable> tables_;
  std::vector<std::byte> bytes_;
};

}  // namespace recmill::store
