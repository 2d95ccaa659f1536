// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Modulo: row = id mod rows, the id read as unsigned. Parameter: rows.
class Modulo final : public IdOp {
 public:
  explicit Modulo(uint64_t rows) : rows_(rows) {}
  uint64_t plain(uint64_t id, IdCounts&) const override { return id % rows_; }
  void run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts&) const override;

 private:
  const uint64_t rows_;
};

}  // namespace recmill::preprocess
