// SPDX-License-Identifier: Apache-2.0
#include "store/choose_reduce.h"

#include <algorithm>

namespace recmill::store {
namespace {

constexpr double kMessageWords = 4096;  // as many go over a link in the time that a message takes

}  // namespace

CopyReduce choose_reduce(const ReduceCase& of) {
  const auto ranks = static_cast<double>(of.touched.size());
  const double others = (ranks - 1) / ranks;  // of what goes anywhere, goes to others
  double sent = 0, touched_by_none = 1, parts = 0;
  for (size_t rank = 0; rank < of.touched.size(); ++rank) {
    sent += of.touched[rank] * of.sums[rank];
    parts += of.sums[rank];
    if (of.all > 0) touched_by_none *= 1 - std::min(of.touched[rank] / of.all, 1.0);
  }
  const double round = ranks * (ranks - 1) * kMessageWords;
  // Ranks look rows up as if they knew nothing of each other. The sums go along with others.
  const double touched = of.all * (1 - touched_by_none);
  const double sparse = sent * others + touched * (of.copies - 1) + round;
  const double all_gather = sent * of.copies * others;
  const double dense = (parts + ranks) * of.all_dense * others + 2 * round;
  if (sparse <= all_gather && sparse <= dense) return CopyReduce::sparse;
  return all_gather <= dense ? CopyReduce::all_gather : CopyReduce::dense;
}

}  // namespace recmill::store
