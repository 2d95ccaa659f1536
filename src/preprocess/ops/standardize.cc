// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/standardize.h"

#include <cmath>

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

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
