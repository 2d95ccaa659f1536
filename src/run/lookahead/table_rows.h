// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "schema/table_spec.h"

namespace recmill::train {

/// The rows of all tables, numbered one table after another.
class TableRows {
 public:
  explicit TableRows(const ModelSpec& spec) {
    for (const TableSpec& table : spec.tables) {
      begins_.push_back(count_);
      names_.push_back(table.name);
      count_ += table.rows;
    }
  }

  int64_t count() const { return count_; }
  int64_t begin(int table) const { return begins_[static_cast<size_t>(table)]; }
  /// "C1:17".
  std::string name_of(int64_t row) const {
    const auto after = std::ranges::upper_bound(begins_, row);
    const auto table = static_cast<size_t>(after - begins_.begin()) - 1;
    return names_[table] + ":" + std::to_string(row - begins_[table]);
  }

 private:
  std::vector<int64_t> begins_;
  std::vector<std::string> names_;
  int64_t count_ = 0;
};

}  // namespace recmill::train
