// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Modulo: row = id mod rows, the id read as unsigned. Parameter: rows.
class Modulo final : public IdOp {
 public:
  explicit Modulo(uint64_t rows) : formula_{rows} {}
  uint64_t plain(uint64_t id, IdCounts&) const override { return formula_(id); }
  void run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts&) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::modulo, .modulo = formula_};
  }

 private:
  const formulas::Modulo formula_;
};

}  // namespace recmill::preprocess
