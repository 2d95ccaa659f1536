// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/direct.h"

#include <algorithm>

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

uint64_t Direct::plain(uint64_t id, IdCounts& counts) const {
  if (id < static_cast<uint64_t>(rows_)) return id;
  if (out_of_range_ == OutOfRange::clamp) {
    ++counts.clamped;
    return static_cast<int64_t>(id) < 0 ? 0 : static_cast<uint64_t>(rows_ - 1);
  }
  ++(out_of_range_ == OutOfRange::drop ? counts.dropped : counts.refused);
  return kNoRow;
}

void Direct::run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts& counts) const {
  uint64_t largest = 0;
  for (const uint64_t id : in) largest = std::max(largest, id);
  if (largest < static_cast<uint64_t>(rows_)) {
    if (in.data() != out.data()) std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  for (size_t i = 0; i < in.size(); ++i) out[i] = plain(in[i], counts);
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
