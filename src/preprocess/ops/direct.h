// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Direct: the id is the row. An id outside [0, rows), read as a signed integer, is refused
/// (error), takes the nearest row (clamp), or is left out (drop), and counted.
/// Parameters: rows, out_of_range.
class Direct final : public IdOp {
 public:
  enum class OutOfRange { error, clamp, drop };
  Direct(int64_t rows, OutOfRange out_of_range) : rows_(rows), out_of_range_(out_of_range) {}
  uint64_t plain(uint64_t id, IdCounts& counts) const override;
  void run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts& counts) const override;

 private:
  const int64_t rows_;
  const OutOfRange out_of_range_;
};

}  // namespace recmill::preprocess
