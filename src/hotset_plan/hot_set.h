// SPDX-License-Identifier: Apache-2.0
// Which rows of each table are hot, that is, stored near: what hotset/ decides, and stores and the
// order of batches go by (FAE, section III-A). Its file is described in
// docs/formats/hotset_plan.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "schema/table_spec.h"

namespace recmill {

struct HotTable {
  std::string table;
  int64_t rows = 0;
  bool all_hot = false;           // every row is, and none is listed
  std::vector<int64_t> hot_rows;  // ascending

  int64_t hot() const { return all_hot ? rows : static_cast<int64_t>(hot_rows.size()); }
  bool operator==(const HotTable&) const = default;
};

struct HotSet {
  std::string model;   // AccessCounts::model: a digest of what rows mean
  int64_t inputs = 0;  // that were counted
  /// Lookups that make a row hot, at least 1, in every table that is not all hot; 0: so many of the
  /// hottest rows, whatever their counts.
  int64_t cutoff = 0;
  std::vector<HotTable> tables;  // in the order of ModelSpec::tables

  int64_t hot() const;
  bool operator==(const HotSet&) const = default;
};

/// Whether the set is one for these tables: rows ascend and are in their table. Errors name table
/// and row.
Status check_hot_set(const HotSet& set, std::span<const TableSpec> tables);

/// Whether a row is hot, in a bit a row of each table that is not all hot.
class HotRows {
 public:
  explicit HotRows(const HotSet& set);

  bool is_hot(size_t table, int64_t row) const {
    const std::vector<uint64_t>& bits = bits_[table];
    return bits.empty() || (bits[static_cast<size_t>(row) / 64] >> (row % 64) & 1) != 0;
  }

 private:
  std::vector<std::vector<uint64_t>> bits_;  // [tables]; empty: all are
};

}  // namespace recmill
