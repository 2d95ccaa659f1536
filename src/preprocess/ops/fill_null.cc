// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/fill_null.h"

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

void FillNull::run(std::span<const float> in, std::span<float> out) const {
  for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] != in[i] ? value_ : in[i];
}

Result<std::unique_ptr<Op>> make_fill_null(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const double value, number_parameter(parameters, "value"));
  return std::unique_ptr<Op>(new FillNull(static_cast<float>(value)));
}

}  // namespace recmill::preprocess
