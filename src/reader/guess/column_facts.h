// SPDX-License-Identifier: Apache-2.0
// What the cells of a column have in common, and what they tell of the label: all that roles are
// guessed from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/guess/sampled_column.h"

namespace recmill::reader {

/// Of numbers alone.
struct NumberFacts {
  double minimum = 0, maximum = 0, median = 0;
  double below_zero = 0;     // share of the cells
  double most_common = 0;    // a value ...
  double common_share = 0;   // ... and the share of the cells that hold it
  double in_range = 0;       // distinct whole values, as a share of those between the ends
  double neighbours = 0;     // correlation of how often values are there that follow each other
  double unevenness = 0;     // largest distance of the distribution from an even one, 0 to 1
  double ranked = 0.5;       // AUC of the values themselves, from where the label is known
  double roughness = 0;      // label rates of values beside their neighbours': about 1 where smooth
  std::vector<double> cuts;  // values that part the cells into equal shares, distinct, ascending
};

/// Cells are those that are not missing; of lists, distinct counts items.
struct ColumnFacts {
  std::string name;
  CellType type = CellType::unsaid;
  int64_t rows = 0, cells = 0;
  int64_t distinct = 0, distinct_in_half = 0;  // ... and in the first half
  int64_t items = 0;                           // of lists, in all cells
  bool whole = false;    // decimal integers (7.0 too, where nothing else is against it)
  bool numbers = false;  // decimal numbers
  bool hexadecimal = false, iso_time = false, leading_zeros = false;
  bool points = false;                  // whole numbers that are written 7.0
  double mean_length = 0;               // characters of a cell
  std::vector<std::string> missing;     // words that stand for no value ("NA", "?")
  std::vector<std::string> values;      // the distinct cells, sorted, where they are few
  bool list = false, weighted = false;  // by its type
  bool whole_items = false;             // of lists: ids are decimal integers
  std::string list_separator;           // empty: no list
  char weight_separator = 0;
  std::string unread;  // what the cells are, where that is nothing that is read
  std::optional<NumberFacts> number;
  // Of the label, where it is known and the sample has both kinds of it:
  double auc = 0.5;  // of the column alone, from the other half of the rows
  double filled_positive = 0, filled_negative = 0;    // share of such rows that have a value
  double amounts_positive = 0, amounts_negative = 0;  // ... and a number other than 0
};

ColumnFacts facts_of(const SampledColumn& column);

/// Adds what `column` tells of `labels`, one for each row: 0, 1, or another number for none.
void add_label_facts(const SampledColumn& column, std::span<const float> labels,
                     ColumnFacts& facts);

/// A finite number as readers take it (parse_double()).
std::optional<double> number_in(std::string_view cell);

/// Digits of at most 19, with a sign or without.
bool is_integer(std::string_view cell);

/// The cell without spaces around it.
std::string_view without_spaces(std::string_view cell);

}  // namespace recmill::reader
