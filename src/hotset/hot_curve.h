// SPDX-License-Identifier: Apache-2.0
// What each cutoff would make hot, from one pass of counts (FAE, figure 6).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "hotset/hot_problem.h"
#include "stats/access_counter.h"

namespace recmill::hotset {

/// What a cutoff, or a set, makes hot.
struct HotFigures {
  int64_t hot_rows = 0;
  int64_t hot_bytes = 0;    // one copy of them
  int64_t hot_inputs = 0;   // all of whose lookups are of hot rows
  int64_t far_lookups = 0;  // of rows that are not
  bool operator==(const HotFigures&) const = default;
};

class HotCurve {
 public:
  /// Of all training inputs counted.
  HotCurve(const HotProblem& problem, const stats::AccessCounter& counts);

  /// Ascending: 1, and each at which fewer rows are hot than at the one before it. At the last one
  /// only tables that are always hot are.
  std::span<const int64_t> cutoffs() const { return cutoffs_; }
  /// What the rows of a device take, of the one where they take most.
  int64_t most_bytes(int64_t cutoff) const;
  /// The least cutoff whose rows fit, or 0 where none does.
  int64_t least_that_fits(int64_t bytes) const;

  /// `inputs_by_least`: how many inputs have so many lookups of the row that they look up which has
  /// least, tables that are always hot left out; HotInputs counts them.
  HotFigures at(int64_t cutoff, const std::map<int64_t, int64_t>& inputs_by_least) const;

 private:
  size_t index_of(int64_t cutoff) const;

  std::vector<int64_t> cutoffs_;
  // [cutoffs] of each:
  std::vector<HotFigures> figures_;  // but for inputs
  std::vector<int64_t> most_bytes_;
};

}  // namespace recmill::hotset
