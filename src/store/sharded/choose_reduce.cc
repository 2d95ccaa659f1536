// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/choose_reduce.h"

#include <algorithm>

namespace recmill::store {
namespace {

constexpr double kMessageWords = 4096;  // as many go over a link in the time that a message takes

// Words of rows that any rank looks up.
double touched_by_any(const ReduceCase& of) {
  double largest = 0, sum = 0, by_none = 1;
  for (const double touched : of.touched) {
    largest = std::max(largest, touched);
    sum += touched;
    if (of.all > 0) by_none *= 1 - std::min(touched / of.all, 1.0);
  }
  if (of.distinct_share == 0) return of.all * (1 - by_none);
  return std::clamp(of.distinct_share * sum, largest, std::max(largest, std::min(sum, of.all)));
}

}  // namespace

CopyReduce choose_reduce(const ReduceCase& of) {
  const auto ranks = static_cast<double>(of.touched.size());
  const double others = (ranks - 1) / ranks;  // of what goes anywhere, goes to others
  double sent = 0, parts = 0;
  for (size_t rank = 0; rank < of.touched.size(); ++rank) {
    sent += of.touched[rank] * of.sums[rank];
    parts += of.sums[rank];
  }
  const double round = ranks * (ranks - 1) * kMessageWords;
  // The sums go along with others; finished ones are a round of their own.
  const double sparse = sent * others + touched_by_any(of) * (of.copies - 1) + round;
  const double all_gather = sent * of.copies * others;
  const double dense = (parts + ranks) * of.all_dense * others + 2 * round;
  if (sparse <= all_gather && sparse <= dense) return CopyReduce::sparse;
  return all_gather <= dense ? CopyReduce::all_gather : CopyReduce::dense;
}

}  // namespace recmill::store
