// SPDX-License-Identifier: Apache-2.0
#pragma once

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
/// take unrelated rows. Golden values are in sigrid_hash_test.cc. Parameters: rows, salt.
class SigridHash final : public IdOp {
 public:
  SigridHash(uint64_t rows, uint64_t salt) : formula_{rows, salt} {}

  static constexpr uint64_t row(uint64_t id, uint64_t salt, uint64_t rows) {
    return formulas::SigridHash{rows, salt}(id);
  }

  uint64_t plain(uint64_t id, IdCounts&) const override { return formula_(id); }
  void run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts&) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::sigrid_hash, .sigrid_hash = formula_};
  }

 private:
  const formulas::SigridHash formula_;
};

}  // namespace recmill::preprocess
