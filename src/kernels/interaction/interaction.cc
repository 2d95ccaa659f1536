// SPDX-License-Identifier: Apache-2.0
#include "kernels/interaction/interaction.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "base/status.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/interaction/interaction.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/precision_vectors-inl.h"
#include "kernels/transpose-inl.h"

#ifndef RECMILL_KERNELS_INTERACTION_SCRATCH
#define RECMILL_KERNELS_INTERACTION_SCRATCH
namespace recmill::kernels::interaction {

// Vectors computed at once: with one load of the other operand each, as many independent sums as
// two fused units need.
inline constexpr int64_t kTile = 8;
// The widest vector of floats; all extents in the scratch memory are multiples of it.
inline constexpr int64_t kLanes = 16;

inline int64_t padded(int64_t size) {
  return (size + kLanes - 1) / kLanes * kLanes;
}

// One sample in the scratch memory, padded with zeros or with what does no harm.
struct Scratch {
  int64_t columns;    // padded dim
  int64_t rows;       // padded vectors
  float* vectors;     // [rows][columns]
  float* transposed;  // [columns][rows]
  float* square;      // [rows][rows]: dots, or their gradients
  float* triangle;    // [pairs, padded, and kLanes more]

  Scratch(const InteractionSpec& s, float* memory)
      : columns(padded(s.dim)),
        rows(padded(s.vectors())),
        vectors(memory),
        transposed(vectors + rows * columns),
        square(transposed + rows * columns),
        triangle(square + rows * rows) {}
};

inline int64_t below(int64_t row) {
  return row * (row - 1) / 2;
}  // pairs of the rows before

}  // namespace recmill::kernels::interaction
#endif

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::interaction::HWY_NAMESPACE {
using namespace precision_vectors::HWY_NAMESPACE;
using transpose::HWY_NAMESPACE::transpose_columns;

using Floats = hn::CappedTag<float, kLanes>;
using Four = hn::FixedTag<float, 4>;
HWY_INLINE int64_t lane_count() {
  return static_cast<int64_t>(hn::Lanes(Floats()));
}

// Copies or converts `size` elements.
template <typename From, typename To>
HWY_INLINE void convert(const From* HWY_RESTRICT from, int64_t size, To* HWY_RESTRICT to) {
  const Floats df;
  int64_t k = 0;
  for (; k + lane_count() <= size; k += lane_count()) {
    store_elements(df, load_elements(df, from + k), to + k);
  }
  for (; k < size; ++k) store_element(load_element(from + k), to + k);
}

// Copies or converts `count` vectors of `dim` elements, so far apart on either side.
template <typename From, typename To>
HWY_INLINE void convert_rows(const From* from, int64_t from_stride, int64_t count, int64_t dim,
                             To* to, int64_t to_stride) {
  if (from_stride == dim && to_stride == dim) return convert(from, count * dim, to);
  for (int64_t v = 0; v < count; ++v) convert(from + v * from_stride, dim, to + v * to_stride);
}

void gather(const InteractionSpec& s, const Vectors& from, int64_t sample, const Scratch& to) {
  float* row = to.vectors;
  if (s.bottom) {
    convert(from.bottom + sample * s.dim, s.dim, row);
    row += to.columns;
  }
  convert_rows(from.rows + sample * from.row_stride, s.dim, s.features, s.dim, row, to.columns);
}

void transpose(const Scratch& s) {
  const Floats df;
  for (int64_t v = 0; v < s.rows; v += lane_count()) {
    for (int64_t k = 0; k < s.columns; k += 4) {
      const float* from = s.vectors + v * s.columns + k;
      float* to = s.transposed + k * s.rows + v;
      transpose_columns(
          df, [&](int64_t r) HWY_ATTR { return hn::LoadU(Four(), from + r * s.columns); },
          [&](int64_t c, auto column) HWY_ATTR { hn::StoreU(column, df, to + c * s.rows); });
    }
  }
}

// C[r][0, lanes) = sum over k < depth of A[r][k] B[k][0, lanes) for the kTile rows of C, folded
// over k from what C holds, or from +0.
template <bool from_zero>
void multiply_tile(const float* HWY_RESTRICT a, int64_t a_stride, const float* HWY_RESTRICT b,
                   int64_t b_stride, int64_t depth, float* HWY_RESTRICT c, int64_t c_stride) {
  static_assert(kTile == 8);
  const Floats df;
  const auto first = [&](int64_t r) HWY_ATTR {
    return from_zero ? hn::Zero(df) : hn::LoadU(df, c + r * c_stride);
  };
  auto c0 = first(0), c1 = first(1), c2 = first(2), c3 = first(3);
  auto c4 = first(4), c5 = first(5), c6 = first(6), c7 = first(7);
  for (int64_t k = 0; k < depth; ++k) {
    const auto row = hn::LoadU(df, b + k * b_stride);
    c0 = hn::MulAdd(hn::Set(df, a[k]), row, c0);
    c1 = hn::MulAdd(hn::Set(df, a[a_stride + k]), row, c1);
    c2 = hn::MulAdd(hn::Set(df, a[2 * a_stride + k]), row, c2);
    c3 = hn::MulAdd(hn::Set(df, a[3 * a_stride + k]), row, c3);
    c4 = hn::MulAdd(hn::Set(df, a[4 * a_stride + k]), row, c4);
    c5 = hn::MulAdd(hn::Set(df, a[5 * a_stride + k]), row, c5);
    c6 = hn::MulAdd(hn::Set(df, a[6 * a_stride + k]), row, c6);
    c7 = hn::MulAdd(hn::Set(df, a[7 * a_stride + k]), row, c7);
  }
  hn::StoreU(c0, df, c);
  hn::StoreU(c1, df, c + c_stride);
  hn::StoreU(c2, df, c + 2 * c_stride);
  hn::StoreU(c3, df, c + 3 * c_stride);
  hn::StoreU(c4, df, c + 4 * c_stride);
  hn::StoreU(c5, df, c + 5 * c_stride);
  hn::StoreU(c6, df, c + 6 * c_stride);
  hn::StoreU(c7, df, c + 7 * c_stride);
}

// Whole vectors are copied: what spills over the end of a row is overwritten by the next one.
void square_to_triangle(const InteractionSpec& s, const Scratch& m) {
  const Floats df;
  for (int64_t i = 1; i < s.vectors(); ++i) {
    for (int64_t j = 0; j < i; j += lane_count()) {
      hn::StoreU(hn::LoadU(df, m.square + i * m.rows + j), df, m.triangle + below(i) + j);
    }
  }
}

// Symmetric, with zeros on the diagonal. What spills over the end of a row is overwritten by the
// mirror image; columns from vectors() on hold anything.
void triangle_to_square(const InteractionSpec& s, const Scratch& m) {
  const Floats df;
  for (int64_t i = 1; i < s.vectors(); ++i) {
    for (int64_t j = 0; j < i; j += lane_count()) {
      hn::StoreU(hn::LoadU(df, m.triangle + below(i) + j), df, m.square + i * m.rows + j);
    }
  }
  const auto lane = hn::Iota(df, 0.0f);
  for (int64_t i = 0; i < s.vectors(); i += lane_count()) {
    for (int64_t j = 0; j < std::min(i + lane_count(), s.vectors()); j += 4) {
      const float* from = m.square + i * m.rows + j;
      const auto store = [&](int64_t c, auto column) HWY_ATTR {
        // Lanes up to this one are of the triangle itself, or the diagonal.
        const auto last = hn::Set(df, static_cast<float>(j + c - i));
        column = hn::IfThenElseZero(hn::Gt(lane, last), column);
        hn::BlendedStore(column, hn::Ge(lane, last), df, m.square + (j + c) * m.rows + i);
      };
      transpose_columns(
          df, [&](int64_t r) HWY_ATTR { return hn::LoadU(Four(), from + r * m.rows); }, store);
    }
  }
}

template <typename T>
void forward_samples(const InteractionSpec& s, int64_t samples, const Vectors& vectors,
                     void* out_data, float* memory) {
  const Scratch m(s, memory);
  T* out = static_cast<T*>(out_data);
  for (int64_t i = 0; i < samples; ++i, out += s.outputs()) {
    gather(s, vectors, i, m);
    transpose(m);
    for (int64_t tile = 0; tile < s.vectors(); tile += kTile) {
      float* dots = m.square + tile * m.rows;
      for (int64_t j = 0; j < std::min(tile + kTile, s.vectors()); j += lane_count()) {
        multiply_tile<true>(m.vectors + tile * m.columns, m.columns, m.transposed + j, m.rows,
                            s.dim, dots + j, m.rows);
      }
    }
    square_to_triangle(s, m);
    if (s.bottom) convert(m.vectors, s.dim, out);
    convert(m.triangle, s.pairs(), out + (s.bottom ? s.dim : 0));
  }
}

template <typename T>
void backward_samples(const InteractionSpec& s, int64_t samples, const Vectors& vectors,
                      const void* gradient_data, const VectorGradients& to, float* memory) {
  const Scratch m(s, memory);
  const T* gradient = static_cast<const T*>(gradient_data);
  float* sums = m.transposed;  // [rows][columns]
  for (int64_t i = 0; i < samples; ++i, gradient += s.outputs()) {
    gather(s, vectors, i, m);
    convert(gradient + (s.bottom ? s.dim : 0), s.pairs(), m.triangle);
    triangle_to_square(s, m);
    if (s.bottom) {
      std::fill_n(sums, kTile * m.columns, 0.0f);
      convert(gradient, s.dim, sums);
    }
    for (int64_t tile = 0; tile < s.vectors(); tile += kTile) {
      const auto multiply = s.bottom && tile == 0 ? multiply_tile<false> : multiply_tile<true>;
      for (int64_t d = 0; d < s.dim; d += lane_count()) {
        multiply(m.square + tile * m.rows, m.rows, m.vectors + d, m.columns, s.vectors(),
                 sums + tile * m.columns + d, m.columns);
      }
    }
    if (s.bottom) convert(sums, s.dim, to.bottom + i * s.dim);
    convert_rows(sums + (s.bottom ? m.columns : 0), m.columns, s.features, s.dim,
                 to.rows + i * to.row_stride, s.dim);
  }
}

void forward(const InteractionSpec& s, int64_t samples, const Vectors& vectors, void* out,
             float* scratch) {
  const auto f =
      s.precision == Precision::float32 ? forward_samples<float> : forward_samples<BFloat16>;
  f(s, samples, vectors, out, scratch);
}

void backward(const InteractionSpec& s, int64_t samples, const Vectors& vectors,
              const void* out_gradient, const VectorGradients& gradients, float* scratch) {
  const auto f =
      s.precision == Precision::float32 ? backward_samples<float> : backward_samples<BFloat16>;
  f(s, samples, vectors, out_gradient, gradients, scratch);
}

}  // namespace recmill::kernels::interaction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::interaction {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

int64_t scratch_size(const InteractionSpec& s) {
  const int64_t columns = padded(s.dim), rows = padded(s.vectors());
  return 2 * rows * columns + rows * rows + padded(s.pairs()) + kLanes;
}

void forward(const InteractionSpec& spec, int64_t samples, const Vectors& vectors, void* out,
             float* scratch) {
  RECMILL_CHECK(spec.dim > 0 && (vectors.bottom || !spec.bottom || samples == 0));
  HWY_DYNAMIC_DISPATCH(forward)(spec, samples, vectors, out, scratch);
}

void backward(const InteractionSpec& spec, int64_t samples, const Vectors& vectors,
              const void* out_gradient, const VectorGradients& gradients, float* scratch) {
  RECMILL_CHECK(spec.dim > 0);
  HWY_DYNAMIC_DISPATCH(backward)(spec, samples, vectors, out_gradient, gradients, scratch);
}

}  // namespace recmill::kernels::interaction
#endif  // HWY_ONCE
