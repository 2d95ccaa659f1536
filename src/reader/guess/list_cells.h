// SPDX-License-Identifier: Apache-2.0
// Cells of text that are lists: "Comedy|Drama", "12^7^30", "3:0.5,9:1.25".
#pragma once

#include <string_view>

#include "reader/guess/column_facts.h"

namespace recmill::reader {

/// Fills the separators of `facts` where the cells are lists: where items come again in other
/// cells, so that there are fewer kinds of items than of cells.
void find_separators(const SampledColumn& column, ColumnFacts& facts);

/// Calls `take` for each id of a cell: for the cell itself where it is no list.
template <typename Take>
void for_each_item(std::string_view cell, const ColumnFacts& facts, Take&& take) {
  static constexpr char kEnd[] = {SampledColumn::kItemEnd};
  const std::string_view separator =
      facts.list ? std::string_view(kEnd, 1) : std::string_view(facts.list_separator);
  while (true) {
    const size_t end =
        separator.empty() ? cell.size() : std::min(cell.find(separator), cell.size());
    const std::string_view item = cell.substr(0, end);
    const size_t weight =
        facts.weight_separator == 0 ? item.size() : item.rfind(facts.weight_separator);
    if (!item.empty()) take(item.substr(0, std::min(weight, item.size())));
    if (end == cell.size()) return;
    cell.remove_prefix(end + separator.size());
  }
}

}  // namespace recmill::reader
