// SPDX-License-Identifier: Apache-2.0
#include "reader/list_cells.h"

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"

namespace recmill::reader {
namespace {

/// What the cells are when they are cut at a character.
struct Items {
  size_t cells = 0, lists = 0, items = 0, with_weight = 0, weighted_point = 0;
  std::unordered_set<uint64_t> kinds, whole_cells;
};

/// "12:0.5": an id, a colon, a number.
bool has_weight(std::string_view item, bool& point) {
  const size_t colon = item.rfind(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  const std::string_view weight = item.substr(colon + 1);
  point = weight.find('.') != std::string_view::npos;
  return number_in(weight).has_value();
}

Items cut(const SampledColumn& column, char separator) {
  Items found;
  ColumnFacts as_list;
  as_list.list_separator = separator;
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::string_view cell = column[row];
    if (cell.empty()) continue;
    ++found.cells;
    found.lists += cell.find(separator) != std::string_view::npos;
    found.whole_cells.insert(hash_bytes(cell));
    for_each_item(cell, as_list, [&](std::string_view item) {
      bool point = false;
      ++found.items;
      const bool weighted = has_weight(item, point);
      found.with_weight += weighted;
      found.weighted_point += weighted && point;
      found.kinds.insert(hash_bytes(weighted ? item.substr(0, item.rfind(':')) : item));
    });
  }
  return found;
}

}  // namespace

void find_separators(const SampledColumn& column, ColumnFacts& facts) {
  for (const char separator : {'^', '|', '\x01', '\x02', ';', ',', ' '}) {
    const Items found = cut(column, separator);
    if (found.lists == 0) continue;
    const bool weighted = found.with_weight == found.items;
    // Words of a title come again too: a space parts a list where all items are numbers or
    // weighted.
    const bool repeated =
        found.kinds.size() * 2 <= found.items && found.kinds.size() <= found.whole_cells.size();
    const bool often = found.lists * 20 >= found.cells;
    if (!often || !(repeated || weighted)) continue;
    if (separator == ' ' || separator == ',') {
      bool numbers = true;
      ColumnFacts as_list;
      as_list.list_separator = separator;
      for (size_t row = 0; row < std::min<size_t>(column.rows(), 1000); ++row) {
        for_each_item(column[row], as_list, [&](std::string_view item) {
          numbers = numbers && number_in(without_spaces(item)).has_value();
        });
      }
      if (!numbers && !weighted) continue;
    }
    facts.list_separator = separator;
    if (weighted) facts.weight_separator = ':';
    return;
  }
  // No list has two items, yet each has a weight: the separator is not there to be seen.
  const Items single = cut(column, '|');
  if (single.cells > 0 && single.with_weight == single.items && single.weighted_point > 0) {
    facts.list_separator = '|';
    facts.weight_separator = ':';
  }
}

}  // namespace recmill::reader
