// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/modulo.h"

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

void Modulo::run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts&) const {
  for (size_t i = 0; i < in.size(); ++i) out[i] = formula_(in[i]);
}

Result<std::unique_ptr<Op>> make_modulo(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, count_parameter(parameters, "rows"));
  return std::unique_ptr<Op>(new Modulo(static_cast<uint64_t>(rows)));
}

}  // namespace recmill::preprocess
