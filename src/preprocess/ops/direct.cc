// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/direct.h"

#include <algorithm>

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

void Direct::run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts& counts) const {
  uint64_t largest = 0;
  for (const uint64_t id : in) largest = std::max(largest, id);
  if (largest < formula_.rows) {
    if (in.data() != out.data()) std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  for (size_t i = 0; i < in.size(); ++i) out[i] = formula_(in[i], counts);
}

Result<std::unique_ptr<Op>> make_direct(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, count_parameter(parameters, "rows"));
  const Json policy = parameters.value("out_of_range", Json());
  for (const auto& [name, value] : {std::pair{"error", Direct::OutOfRange::error},
                                    std::pair{"clamp", Direct::OutOfRange::clamp},
                                    std::pair{"drop", Direct::OutOfRange::drop}}) {
    if (policy == name) return std::unique_ptr<Op>(new Direct(rows, value));
  }
  return wrong_parameter("out_of_range", "error, clamp or drop");
}

}  // namespace recmill::preprocess
