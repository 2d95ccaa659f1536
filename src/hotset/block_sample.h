// SPDX-License-Identifier: Apache-2.0
// Which blocks of a data set are looked at, and what they say of all of it (FAE's sampler of
// inputs, with other blocks for judging than for counting: a hot share measured on the rows that
// were counted is too high).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace recmill::hotset {

/// A block of consecutive rows of the data's own order.
struct SampledBlock {
  int64_t block = 0;
  bool judges = false;  // else it counts
  bool operator==(const SampledBlock&) const = default;
};

inline constexpr int64_t kStrata = 200, kFewestSampledBlocks = 8;

/// Blocks in ascending order: ceil(share x blocks) of them, but at least 8, or all. A quarter of
/// them judge, the others count; where all are drawn all count. share in (0, 1].
///
/// Those that count are drawn of 200 strata of neighbours, or as many as there are such blocks, of
/// each as many. Those that judge are drawn of all that do not count, any as likely as any other:
/// they stand for these whatever the order of the data is. (Blocks that judged as parts of the same
/// strata would have no counted neighbour in theirs, as others have: where ids come and go in the
/// course of the data, what is hot would be too low by that.)
std::vector<SampledBlock> sample_blocks(int64_t blocks, double share, uint64_t seed);

/// Of a block, or of several.
struct BlockTally {
  int64_t rows = 0;        // of the data
  int64_t inputs = 0;      // of these, what training keeps
  int64_t lookups = 0;     // by inputs
  int64_t hot_inputs = 0;  // all of whose lookups are of hot rows
  int64_t hot_lookups = 0;

  BlockTally& operator+=(const BlockTally& other);
  bool operator==(const BlockTally&) const = default;
};

struct ShareEstimate {
  double share = 0;
  double low = 0, high = 0;  // the 99 % interval
  bool operator==(const ShareEstimate&) const = default;
};
struct HotShares {
  ShareEstimate lookups, inputs;
  bool operator==(const HotShares&) const = default;
};

/// Shares of all data that are hot: what `counted` has, exactly, and for the `rest_blocks` other
/// blocks of `rest_rows` rows what those that judge have a row. The interval is Wilson's, of as
/// many independent trials as err as the blocks that judge do, with Student's t. Exact where the
/// rest is none or judges whole; with less than two judges the rest may be anything.
HotShares estimate_hot_shares(const BlockTally& counted, std::span<const BlockTally> judging,
                              int64_t rest_blocks, int64_t rest_rows);

}  // namespace recmill::hotset
