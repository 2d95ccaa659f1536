// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/fill_null.h"

#include <bit>

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

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
