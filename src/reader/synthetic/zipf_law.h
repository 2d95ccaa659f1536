// SPDX-License-Identifier: Apache-2.0
// Drawing ranks by Zipf's law, in constant time or by quantile, and with the same bits on every
// machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace recmill::reader {

/// Draws index i with probability weights[i] / sum, to within 2^-32 an entry, by one look-up
/// (Walker's alias method as built by Vose, 1991).
class AliasTable {
 public:
  explicit AliasTable(std::span<const double> weights);  // >= 0, not all 0, fewer than 2^32

  /// `bits`: 64 uniform bits.
  uint32_t sample(uint64_t bits) const {
    const auto product = static_cast<unsigned __int128>(bits) * slots_.size();
    const Slot& slot = slots_[static_cast<size_t>(product >> 64)];
    const auto fraction = static_cast<uint32_t>(static_cast<uint64_t>(product) >> 32);
    return fraction < slot.threshold ? slot.index : slot.alias;
  }

 private:
  struct Slot {
    uint32_t threshold;  // of 2^32
    uint32_t index, alias;
  };
  std::vector<Slot> slots_;
};

/// Ranks 0 ... n-1 with probability proportional to (rank + 1)^-exponent. Above rank 256 the law is
/// constant over buckets of 1/128 octave, at the value of their middle: within 0.4 % times the
/// exponent of Zipf's at each rank. All functions are those of the law as drawn.
class ZipfLaw {
 public:
  ZipfLaw(int64_t ranks, double exponent);  // ranks >= 1, exponent >= 0

  /// The exponent with which the first `top_share` of `ranks` take `access_share` of the draws.
  /// Refused when no exponent in [0, 20] does.
  static Result<double> exponent_for(int64_t ranks, double top_share, double access_share);

  int64_t ranks() const { return ranks_; }
  double exponent() const { return exponent_; }

  /// A rank from 128 uniform bits.
  int64_t sample(uint64_t bits, uint64_t more) const {
    const uint32_t bucket = alias_.sample(bits);
    const int64_t first = firsts_[bucket];
    const int64_t width = firsts_[bucket + 1] - first;
    if (width == 1) return first;
    return first + static_cast<int64_t>((static_cast<unsigned __int128>(more) * width) >> 64);
  }

  /// The rank at a quantile, in units of 2^-64: a monotone function of it, whose ranks have the
  /// law's probabilities to within 2^-52.
  int64_t quantile(uint64_t at) const;

  double probability(int64_t rank) const;
  /// Probability of the first `count` ranks.
  double cumulative(int64_t count) const;

  /// Sum over ranks of probability(rank) * value(rank), at the middle of each bucket.
  template <typename Function>
  double mean(const Function& value) const {
    double sum = 0;
    for (size_t b = 0; b + 1 < firsts_.size(); ++b) {
      const double middle = static_cast<double>(firsts_[b] + firsts_[b + 1] - 1) * 0.5;
      sum += (before_[b + 1] - before_[b]) * value(middle);
    }
    return sum;
  }

 private:
  ZipfLaw(int64_t ranks, double exponent, std::vector<int64_t> firsts);
  size_t bucket_of(int64_t rank) const;

  int64_t ranks_;
  double exponent_;
  std::vector<int64_t> firsts_;  // [buckets + 1], first rank of each; back(): ranks
  std::vector<double> before_;   // [buckets + 1], probability of all ranks below firsts_[b]
  std::vector<uint64_t> edges_;  // quantiles from which on buckets begin; none for those past 1
  AliasTable alias_;             // of buckets
};

}  // namespace recmill::reader
