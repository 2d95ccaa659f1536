// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/fill_missing_id.h"

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

void FillMissingId::run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
                        float* weights) const {
  for (int64_t s = 0; s < in.samples; ++s) {
    const int64_t from = in.offsets[s];
    const int64_t size = in.offsets[s + 1] - from;
    const int64_t to = out_offsets[s] - out_offsets[0];
    if (size == 1) {
      out[to] = in.ids[from];
    } else if (size == 0) {
      out[to] = id_;
    } else {
      std::copy_n(in.ids + from, size, out + to);
    }
    if (weights == nullptr) continue;
    if (size == 0 || in.weights == nullptr) {
      std::fill_n(weights + to, length(size), 1.0f);
    } else {
      std::copy_n(in.weights + from, size, weights + to);
    }
  }
}

Result<std::unique_ptr<Op>> make_fill_missing_id(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const uint64_t id, id_parameter(parameters, "id"));
  return std::unique_ptr<Op>(new FillMissingId(id));
}

}  // namespace recmill::preprocess
