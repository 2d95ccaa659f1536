// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

/// Clamp: y = low where x < low, high where x > high, else x (NaN stays). Parameters: low, high.
class Clamp final : public DenseOp {
 public:
  Clamp(float low, float high) : formula_{low, high} {}
  float plain(float x) const override { return formula_(x); }
  void run(std::span<const float> in, std::span<float> out) const override;
  KeptRange kept() const override { return formula_.kept(); }
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::clamp, .clamp = formula_};
  }

 private:
  const formulas::Clamp formula_;
};

}  // namespace

void Clamp::run(std::span<const float> in, std::span<float> out) const {
  for (size_t i = 0; i < in.size(); ++i) {
    const float raised = in[i] < formula_.low ? formula_.low : in[i];
    out[i] = raised > formula_.high ? formula_.high : raised;
  }
}

Result<std::unique_ptr<Op>> make_clamp(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const double low, number_parameter(parameters, "low"));
  RECMILL_ASSIGN_OR_RETURN(const double high, number_parameter(parameters, "high"));
  if (!(low <= high)) return wrong_parameter("low", "at most 'high'");
  return std::unique_ptr<Op>(new Clamp(static_cast<float>(low), static_cast<float>(high)));
}

}  // namespace recmill::preprocess
