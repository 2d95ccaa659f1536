// SPDX-License-Identifier: Apache-2.0
// Applies a row optimizer to rows whose gradients are summed. The formula comes from table/:
//
//   struct Formula {
//     static constexpr int kElementColumns;  // float32 columns of dim elements kept for each row
//     static constexpr bool kRowState;       // one float32 kept for each row
//     static constexpr int kFactors;         // what row() tells element() of a row; without: 0
//     void row(float& state, float mean_square, float* factors) const;  // once a row, if kRowState
//     void element(float& weight, float* state, float gradient, const float* factors) const;
//   };
//
//   for row:
//     gradient[e] = with_l2(gradient[e], weight[e], l2)
//     if kRowState: formula.row(row_state[slot], mean_square(gradient), factors)
//     for element e: formula.element(weight[e], {state column c at e}, gradient[e], factors)
//     weights of 16-bit rows are rounded stochastically (rounding.h)
//
// element() is one stream of IEEE operations on floats; the loop over elements is compiled for each
// instruction set (apply_rows-inl.h), and without contraction gives the same bits on all of them.
// mean_square folds squares in 16 lanes from +0, lane l elements l, l + 16, ...; adds the lanes
// pairwise 8, 4, 2, 1; divides once by dim (square_lanes.h).
#pragma once

#include <cstdint>

#include "base/random.h"
#include "kernels/row_storage.h"

namespace recmill::kernels {

/// Rows to update: each slot at most once.
struct ApplyRange {
  RowStorage rows;
  const int64_t* slots = nullptr;    // [count]
  const int64_t* keys = nullptr;     // [count], rows of the table: what rounding is keyed by
  const float* gradients = nullptr;  // [count][dim]
  int64_t count = 0;
  Random rounding{0, Purpose::stochastic_rounding};  // of this table and iteration
  int64_t following = 0;  // slots behind `count` whose rows are updated next, and fetched meanwhile
  // Where `rows` holds some columns of the table's rows:
  int64_t first_element = 0;  // the first one, a multiple of 4
  // [count], of the whole rows' gradients, L2 included; null: those of `gradients`
  const float* mean_squares = nullptr;
  float l2 = 0.0f;  // with_l2.h
  const Random* roundings = nullptr;  // [count], of each row where rows are of several tables
};

}  // namespace recmill::kernels
