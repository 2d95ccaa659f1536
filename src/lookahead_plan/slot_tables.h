// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/table_spec.h"

namespace recmill {

/// The rows of all tables, numbered one table after another, and which of them may share slots:
/// those of tables of one record shape and the same optimizer, which make one *slot table*.
class SlotTables {
 public:
  explicit SlotTables(const ModelSpec& model);

  /// Of all tables.
  int64_t rows() const { return begins_.back(); }
  int tables() const { return static_cast<int>(names_.size()); }
  /// The number of a table's first row; of tables(): rows().
  int64_t begin(int table) const { return begins_[static_cast<size_t>(table)]; }
  int table_of(int64_t row) const;
  bool is_frozen(int64_t row) const { return frozen_[static_cast<size_t>(table_of(row))]; }
  /// "C1:17".
  std::string name_of(int64_t row) const;

  /// Slot tables.
  int count() const { return static_cast<int>(firsts_.size()); }
  int slot_table_of(int table) const { return slot_tables_[static_cast<size_t>(table)]; }
  int slot_table_of_row(int64_t row) const {
    return count() == 1 ? 0 : slot_table_of(table_of(row));
  }
  /// The first table whose rows it holds.
  int first_table(int slot_table) const { return firsts_[static_cast<size_t>(slot_table)]; }
  /// Of the tables whose rows it holds.
  int64_t rows_of(int slot_table) const;

 private:
  std::vector<std::string> names_;  // [tables]
  std::vector<int64_t> begins_;     // [tables + 1]
  std::vector<int> slot_tables_;    // [tables]
  std::vector<bool> frozen_;        // [tables]
  std::vector<int> firsts_;         // [slot tables]
};

}  // namespace recmill
