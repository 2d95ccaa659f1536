// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "store/sharded/sharded_options.h"

namespace recmill::store {

/// What all ranks know of an iteration's rows with copies. Words are floats, or as much.
struct ReduceCase {
  /// [ranks]: of rows with copies that each rank looked up, with their numbers.
  std::span<const double> touched;
  std::span<const int> sums;  // [ranks]: that each sends of a row, one a subtree of its slices
  double all = 0;             // of all rows with copies
  double all_dense = 0;       // of one vector of them
  double copies = 1;          // of such a row, on average
  /// Rows that any rank looked up over those of each rank added up, when ranks last saw it; 0: they
  /// never did, and are taken to look rows up as if they knew nothing of each other.
  double distinct_share = 0;
};

/// The way of the least predicted cost to the ranks together: words that go over links, and so many
/// more for each message. Never automatic. A function of its arguments alone, so that all ranks
/// choose the same.
CopyReduce choose_reduce(const ReduceCase& of);

}  // namespace recmill::store
