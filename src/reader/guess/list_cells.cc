// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/list_cells.h"

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"

namespace recmill::reader {
namespace {

/// What the cells are when they are cut at a character.
struct Items {
  size_t cells = 0, lists = 0, items = 0, with_weight = 0, weighted_point = 0;
  size_t shortest = SIZE_MAX, longest = 0;  // of the cells, in items
  bool numbers = true, codes = true;        // all items are numbers; hold a digit
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

Items cut(const SampledColumn& column, const ColumnFacts& facts, const std::string& separator) {
  Items found;
  ColumnFacts as_list;
  as_list.list_separator = separator;
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::string_view cell = column[row];
    if (cell.empty() || std::ranges::find(facts.missing, cell) != facts.missing.end()) continue;
    ++found.cells;
    found.lists += cell.find(separator) != std::string_view::npos;
    found.whole_cells.insert(hash_bytes(cell));
    const size_t before = found.items;
    for_each_item(cell, as_list, [&](std::string_view item) {
      bool point = false;
      ++found.items;
      const bool weighted = has_weight(item, point);
      found.with_weight += weighted;
      found.weighted_point += weighted && point;
      found.numbers = found.numbers && number_in(without_spaces(item)).has_value();
      found.codes = found.codes && item.find_first_of("0123456789") != std::string_view::npos;
      found.kinds.insert(hash_bytes(weighted ? item.substr(0, item.rfind(':')) : item));
    });
    found.shortest = std::min(found.shortest, found.items - before);
    found.longest = std::max(found.longest, found.items - before);
  }
  return found;
}

/// Whether what is cut at `separator` are lists. Words of a title come again too, dates and paths
/// have parts, and each has as many.
bool are_lists(const Items& found, const std::string& separator) {
  const bool weighted = found.with_weight == found.items;
  const bool repeated =
      found.kinds.size() * 2 <= found.items && found.kinds.size() <= found.whole_cells.size();
  const bool often = found.lists * 20 >= found.cells;
  if (!often || !(repeated || weighted)) return false;
  if (weighted || std::string_view("^|\x01\x02;").find(separator) != std::string_view::npos)
    return true;
  if (separator == "/" && found.shortest == found.longest) return false;
  if (separator != "/" && found.numbers) return true;
  const bool again = found.kinds.size() * 20 <= found.items && found.shortest < found.longest;
  return again && (separator == "," || found.codes);
}

/// The separator with the spaces that are always around it.
std::string with_spaces(const SampledColumn& column, const std::string& separator) {
  bool before = true, behind = true;
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::string_view cell = column[row];
    for (size_t at = cell.find(separator); at != std::string_view::npos;
         at = cell.find(separator, at + 1)) {
      before = before && at > 0 && cell[at - 1] == ' ';
      behind = behind && at + 1 < cell.size() && cell[at + 1] == ' ';
    }
  }
  return (before ? " " : "") + separator + (behind ? " " : "");
}

}  // namespace

void find_separators(const SampledColumn& column, ColumnFacts& facts) {
  for (const std::string separator : {"^", "|", "\x01", "\x02", ";", ",", " ", "/"}) {
    const Items found = cut(column, facts, separator);
    if (found.lists == 0 || !are_lists(found, separator)) continue;
    const bool weighted = found.with_weight == found.items;
    // Around numbers no space is read, and some cells may have none.
    const bool plain = separator == " " || found.numbers || weighted;
    facts.list_separator = plain ? separator : with_spaces(column, separator);
    if (weighted) facts.weight_separator = ':';
    return;
  }
  // No list has two items, yet each has a weight: the separator is not there to be seen.
  const Items single = cut(column, facts, "|");
  if (single.cells > 0 && single.with_weight == single.items && single.weighted_point > 0) {
    facts.list_separator = "|";
    facts.weight_separator = ':';
  }
}

}  // namespace recmill::reader
