// SPDX-License-Identifier: Apache-2.0
// The plain meaning of apply_rows.h.
#pragma once

#include <vector>

#include "kernels/row_update/apply_rows.h"
#include "kernels/row_update/rounding.h"
#include "kernels/row_update/square_lanes.h"
#include "kernels/row_update/with_l2.h"
#include "kernels/row_values.h"

namespace recmill::kernels {

inline float mean_square_reference(const float* gradient, int64_t dim) {
  SquareLanes lanes{};
  add_squares(gradient, dim, lanes);
  return mean_square(lanes, dim);
}

inline void set_weight_stochastically(const RowStorage& rows, int64_t slot, int64_t element,
                                      float value, uint32_t word) {
  if (rows.precision == RowPrecision::bfloat16)
    value = to_float(round_stochastically_to_bfloat16(value, word));
  if (rows.precision == RowPrecision::float16)
    value = to_float(round_stochastically_to_float16(value, word));
  set_weight(rows, slot, element, value);
}

template <class Formula>
void apply_rows_reference(const ApplyRange& range, const Formula& formula) {
  const RowStorage& rows = range.rows;
  const int64_t dim = rows.dim;
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t slot = range.slots[i];
    std::vector<float> gradient(range.gradients + i * dim, range.gradients + (i + 1) * dim);
    for (int64_t e = 0; e < dim; ++e)
      gradient[e] = with_l2(gradient[e], weight_value(rows, slot, e), range.l2);
    float factors[Formula::kFactors + 1] = {};
    if constexpr (Formula::kRowState) {
      const bool given = range.mean_squares != nullptr;
      formula.row(rows.row_state[slot],
                  given ? range.mean_squares[i] : mean_square_reference(gradient.data(), dim),
                  factors);
    }
    for (int64_t e = 0; e < dim; ++e) {
      float weight = weight_value(rows, slot, e);
      float state[Formula::kElementColumns + 1] = {};
      for (int c = 0; c < Formula::kElementColumns; ++c) state[c] = rows.state(slot)[c * dim + e];
      formula.element(weight, state, gradient[e], factors);
      for (int c = 0; c < Formula::kElementColumns; ++c) rows.state(slot)[c * dim + e] = state[c];
      const uint64_t key = static_cast<uint64_t>(range.keys[i]);
      const Random& rounding = range.roundings == nullptr ? range.rounding : range.roundings[i];
      set_weight_stochastically(rows, slot, e, weight, rounding.bits(key, range.first_element + e));
    }
  }
}

}  // namespace recmill::kernels
