// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

/// Standardize: y = (x - mean) (1 / deviation), in float64, rounded to float32; NaN stays.
/// Parameters: mean, deviation (above 0), which run/column_statistics.h finds of the training rows.
class Standardize final : public DenseOp {
 public:
  Standardize(double mean, double deviation) : formula_{mean, 1.0 / deviation} {}
  float plain(float x) const override { return formula_(x); }
  void run(std::span<const float> in, std::span<float> out) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::standardize, .standardize = formula_};
  }

 private:
  const formulas::Standardize formula_;
};

}  // namespace

void Standardize::run(std::span<const float> in, std::span<float> out) const {
  for (size_t i = 0; i < in.size(); ++i) out[i] = formula_(in[i]);
}

Result<std::unique_ptr<Op>> make_standardize(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const double mean, number_parameter(parameters, "mean"));
  RECMILL_ASSIGN_OR_RETURN(const double deviation, number_parameter(parameters, "deviation"));
  if (!std::isfinite(mean)) return wrong_parameter("mean", "finite");
  if (!(deviation > 0.0) || !std::isfinite(deviation) || !std::isfinite(1.0 / deviation))
    return wrong_parameter("deviation", "above 0");
  return std::unique_ptr<Op>(new Standardize(mean, deviation));
}

}  // namespace recmill::preprocess
