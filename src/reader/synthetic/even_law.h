// SPDX-License-Identifier: Apache-2.0
// Laws over ids that need no table: any rank from one word of random bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reader/synthetic/portable_math.h"

namespace recmill::reader {

/// Every one of `ranks` <= 2^32 ranks is as likely.
struct UniformLaw {
  int64_t ranks = 1;
  int64_t sample(uint32_t word) const {
    return static_cast<int64_t>((uint64_t{word} * static_cast<uint64_t>(ranks)) >> 32);
  }
  /// A monotone function of a quantile in units of 2^-64.
  int64_t quantile(uint64_t at) const { return sample(static_cast<uint32_t>(at >> 32)); }
  double probability(int64_t /*rank*/) const { return 1.0 / static_cast<double>(ranks); }
};

/// Nearly even, as RecFlex's generator draws ids (SC 2024): an id has the weight U^(1/3) with U
/// uniform in [0, 1]. Here U is the mean of each of `ranks` even steps, from the largest down, so
/// that rank 0 is the most popular, at 4/3 of the mean: by the inverse of the distribution
/// x^(4/3) of the place x of a draw among the ranks from the last one up. IEEE square roots alone,
/// so the same bits on every machine.
struct PowerLaw {
  int64_t ranks = 1;
  int64_t sample(uint32_t word) const {
    const double root = std::sqrt((static_cast<double>(word) + 0.5) * 0x1p-32);
    const double place = root * std::sqrt(root);  // u^(3/4), in (0, 1)
    return ranks - 1 - static_cast<int64_t>(place * static_cast<double>(ranks));
  }
  /// A monotone function of a quantile in units of 2^-64.
  int64_t quantile(uint64_t at) const { return sample(~static_cast<uint32_t>(at >> 32)); }
  double probability(int64_t rank) const { return below(ranks - rank) - below(ranks - rank - 1); }

 private:
  /// Of the last `count` ranks.
  double below(int64_t count) const {
    if (count == 0) return 0.0;
    return portable_pow(static_cast<double>(count) / static_cast<double>(ranks), 4.0 / 3.0);
  }
};

/// A bijection of [0, count) that parts neighbours: by steps of about 0.618 count, of fewer where
/// 32 bits would not hold count steps (from count = 82,000 on).
class Scatter {
 public:
  /// count <= 2^31.
  Scatter(int64_t count, uint64_t seed);
  uint64_t operator()(int64_t position) const {
    // x modulo count (Lemire, Kaser, Kurz, "Faster remainder by direct computation", 2019): exact
    // for 32 bits.
    const uint64_t fraction = inverse_ * (static_cast<uint64_t>(position) * step_ + shift_);
    return static_cast<uint64_t>((static_cast<unsigned __int128>(fraction) * count_) >> 64);
  }

 private:
  uint64_t count_, step_, shift_;
  uint64_t inverse_;  // 2^64 / count, rounded up
};

}  // namespace recmill::reader
