// SPDX-License-Identifier: Apache-2.0
// From what columns have in common to what they are: decided here for every format.
#pragma once

#include <string>
#include <vector>

#include "reader/guess/column_facts.h"

namespace recmill::reader {

/// A column, or none, and how sure that is, in words for a comment.
struct LabelGuess {
  int column = -1;
  LabelOptions rule;  // data.label
  double rate = 0.5;  // share of positive rows, where it is known
  std::string why;
};

struct ColumnGuess {
  ColumnSpec spec;
  std::string why;      // what was seen, for a comment
  bool kept = true;     // false: the configuration need not name it
  bool warned = false;  // `why` is to be looked at
};

/// The label: the column `wanted` where that is not empty; else by a name as "click" or "rating",
/// the only column of two values, or such a one at either end. A column of no two kinds of cells
/// that is asked for is an error.
Result<LabelGuess> guess_label(const std::vector<ColumnFacts>& facts, const std::string& wanted);

/// 0 or 1 for each row; another number for a cell without a label.
std::vector<float> labels_of(const SampledColumn& column, const LabelOptions& rule);

/// The column of the finest times that vary; -1: none. Numbers are times where they are unix
/// seconds (or thousandths, millionths of them) or dates written as digits.
int guess_time(const std::vector<ColumnFacts>& facts, int label);

/// Roles of all columns, in order. Numbers with a point and integers that spread like measurements
/// are dense; other integers, words and lists are ids; what is constant, a key, a second time, of
/// no readable type, or tells the label by being filled is ignored.
std::vector<ColumnGuess> guess_roles(const std::vector<ColumnFacts>& facts, const LabelGuess& label,
                                     int time);

}  // namespace recmill::reader
