// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/random.h"
#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// SigridHash: a raw id becomes a row in [0, rows). One definition for every device, in unsigned
/// 64-bit arithmetic modulo 2^64 (>> shifts zeros in, ^ is exclusive or):
///
///   x = (id ^ salt) + 0x9E3779B97F4A7C15
///   x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
///   x = (x ^ (x >> 27)) * 0x94D049BB133111EB
///   x =  x ^ (x >> 31)
///   row = floor(x * rows / 2^64)       the high word of the 128-bit product
///
/// The steps to x are SplitMix64's finaliser, a bijection, so ids collide only in the last step.
/// Each table has a salt of its own (hash_bytes of its name): equal ids of different columns then
/// take unrelated rows. Golden values stand in sigrid_hash_test.cc. Parameters: rows, salt.
class SigridHash final : public IdOp {
 public:
  SigridHash(uint64_t rows, uint64_t salt) : rows_(rows), salt_(salt) {}

  static constexpr uint64_t row(uint64_t id, uint64_t salt, uint64_t rows) {
    const uint64_t x = Random::mix(id ^ salt);
    return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * rows) >> 64);
  }

  uint64_t plain(uint64_t id, IdCounts&) const override { return row(id, salt_, rows_); }
  void run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts&) const override;

 private:
  const uint64_t rows_, salt_;
};

}  // namespace recmill::preprocess
