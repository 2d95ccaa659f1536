// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/clamp.h"

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

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
