// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Direct: the id is the row. An id outside [0, rows), read as a signed integer, is refused
/// (error), takes the nearest row (clamp), or is left out (drop), and counted.
/// Parameters: rows, out_of_range.
class Direct final : public IdOp {
 public:
  using OutOfRange = formulas::Direct::OutOfRange;
  Direct(int64_t rows, OutOfRange out_of_range)
      : formula_{static_cast<uint64_t>(rows), out_of_range} {}
  uint64_t plain(uint64_t id, IdCounts& counts) const override { return formula_(id, counts); }
  void run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts& counts) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::direct, .direct = formula_};
  }

 private:
  const formulas::Direct formula_;
};

}  // namespace recmill::preprocess
