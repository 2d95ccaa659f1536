// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

/// FillNull: y = value where x is NaN (missing), else x. Parameter: value.
class FillNull final : public DenseOp {
 public:
  explicit FillNull(float value) : formula_{value} {}
  float plain(float x) const override { return formula_(x); }
  void run(std::span<const float> in, std::span<float> out) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::fill_null, .fill_null = formula_};
  }

 private:
  const formulas::FillNull formula_;
};

}  // namespace

void FillNull::run(std::span<const float> in, std::span<float> out) const {
  // Comparing bits keeps the loop free of branches, which missing cells would make unpredictable.
  const auto value = std::bit_cast<uint32_t>(formula_.value);
  for (size_t i = 0; i < in.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(in[i]);
    const auto magnitude = static_cast<int32_t>(bits & 0x7FFFFFFFu);
    out[i] = std::bit_cast<float>(magnitude > 0x7F800000 ? value : bits);
  }
}

Result<std::unique_ptr<Op>> make_fill_null(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const double value, number_parameter(parameters, "value"));
  return std::unique_ptr<Op>(new FillNull(static_cast<float>(value)));
}

}  // namespace recmill::preprocess
