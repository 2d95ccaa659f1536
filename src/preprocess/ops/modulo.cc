// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

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

}  // namespace

void Modulo::run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts&) const {
  for (size_t i = 0; i < in.size(); ++i) out[i] = formula_(in[i]);
}

Result<std::unique_ptr<Op>> make_modulo(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, count_parameter(parameters, "rows"));
  return std::unique_ptr<Op>(new Modulo(static_cast<uint64_t>(rows)));
}

}  // namespace recmill::preprocess
