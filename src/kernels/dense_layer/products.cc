// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/products.h"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense_layer/products.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/partial_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::dense_layer::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using partial_vectors::HWY_NAMESPACE::load_first;
using partial_vectors::HWY_NAMESPACE::store_first;

using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;
constexpr Floats kFloats;
constexpr int64_t kLanes = hn::MaxLanes(kFloats);
constexpr int64_t kPanel = product_panels(1).width;

// Rows of a tile: the sums of two vectors each, a row of B and an element of A fill the registers.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 14 : 6;

// Bytes of B that are near while all rows of A meet them. A deeper B is worked through a part of
// the depth after the other; what is summed so far waits in C.
constexpr int64_t kNearBytes = 384 * 1024;

// A part of the depth.
struct Depths {
  int64_t begin, end;
};

// A part of C; columns: two vectors, or at most one.
struct Tile {
  int64_t row, column, columns;
  Depths depths;
  const float* b;               // B(depths.begin, column)
  int64_t b_step;               // floats between elements of depth
  const float* next;            // what is wanted soon: a place for each element of depth
  int64_t next_step;            // floats between them
  int64_t next_run, next_jump;  // after so many places so many floats are left out
};

template <int vectors>
HWY_INLINE Vector load(const float* from, int v, int64_t columns) {
  return vectors == 1 ? load_first(kFloats, from, columns) : hn::LoadU(kFloats, from + v * kLanes);
}

template <int vectors>
HWY_INLINE void store(Vector value, float* to, int v, int64_t columns) {
  vectors == 1 ? store_first(kFloats, value, to, columns)
               : hn::StoreU(value, kFloats, to + v * kLanes);
}

// Calls body(r, v) for each vector of a tile, unrolled.
template <int rows, int vectors, typename Body>
HWY_INLINE void for_tile(const Body& body) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) body(r, v);
  }
}

template <int rows, int vectors>
HWY_INLINE void finish(const Product& p, const Tile& at, Vector (&sums)[rows][vectors]) {
  float* c = p.c + at.row * p.columns + at.column;
  const bool whole = at.depths.end == p.depth;
  if (whole && p.bias) {
    for_tile<rows, vectors>([&](int r, int v) HWY_ATTR {
      sums[r][v] = hn::Add(sums[r][v], hn::Set(kFloats, p.bias[at.row + r]));
    });
  }
  if (whole && p.relu) {
    for_tile<rows, vectors>([&](int r, int v) HWY_ATTR {
      const auto negative = hn::Lt(sums[r][v], hn::Zero(kFloats));
      sums[r][v] = hn::IfThenZeroElse(negative, sums[r][v]);
    });
  }
  if (p.accumulate) {
    for_tile<rows, vectors>([&](int r, int v) HWY_ATTR {
      sums[r][v] = hn::Add(load<vectors>(c + r * p.columns, v, at.columns), sums[r][v]);
    });
  }
  for_tile<rows, vectors>(
      [&](int r, int v) HWY_ATTR { store<vectors>(sums[r][v], c + r * p.columns, v, at.columns); });
}

// The lines of C, so that they are there when the sums are made. (What is only stored to waits for
// nobody: fetching it costs 1 % of a step of 128 samples.)
template <int rows>
HWY_INLINE void fetch(const Product& p, const Tile& at) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    const float* c = p.c + (at.row + r) * p.columns + at.column;
    __builtin_prefetch(c, 1);
    __builtin_prefetch(c + at.columns / 2, 1);
    __builtin_prefetch(c + at.columns - 1, 1);
  }
}

template <int rows, int vectors, bool a_transposed>
void compute(const Product& p, const Tile& at) {
  Vector sums[rows][vectors];
  if (at.depths.begin == 0) {
    for_tile<rows, vectors>([&](int r, int v) HWY_ATTR { sums[r][v] = hn::Zero(kFloats); });
  } else {
    const float* c = p.c + at.row * p.columns + at.column;
    for_tile<rows, vectors>([&](int r, int v) HWY_ATTR {
      sums[r][v] = load<vectors>(c + r * p.columns, v, at.columns);
    });
  }
  if (p.accumulate) fetch<rows>(p, at);
  const float* b = at.b;
  const int64_t a_row = a_transposed ? 1 : p.a_stride, a_depth = a_transposed ? p.a_stride : 1;
  const float* a = p.a + at.row * a_row + at.depths.begin * a_depth;
  // Every third row of A: the other addresses need no registers of their own.
  const float* thirds[(rows + 2) / 3];
#pragma GCC unroll 16
  for (int t = 0; t < (rows + 2) / 3; ++t) thirds[t] = a + 3 * t * a_row;
  const int64_t depth = at.depths.end - at.depths.begin;
  const float* next = at.next;
  for (int64_t k = 0; k < depth; next += at.next_jump) {
    const int64_t until = std::min(depth, k + at.next_run);
    for (; k < until; ++k, b += at.b_step, next += at.next_step) {
      __builtin_prefetch(next, 0, 2);
      Vector of_b[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) of_b[v] = load<vectors>(b, v, at.columns);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const Vector of_a = hn::Set(kFloats, thirds[r / 3][r % 3 * a_row + k * a_depth]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(of_a, of_b[v], sums[r][v]);
      }
    }
  }
  finish<rows, vectors>(p, at, sums);
}

using Compute = void (*)(const Product&, const Tile&);

// By rows - 1.
template <int vectors, bool a_transposed, int... less>
constexpr std::array<Compute, kTileRows> kernels(std::integer_sequence<int, less...>) {
  return {compute<less + 1, vectors, a_transposed>...};
}

// What the tiles of some rows of C fetch of the next rows' part of A.
struct Ahead {
  const float* first;
  int64_t tile_step, depth_step;  // floats
  int64_t run, jump;              // as in Tile
};

template <bool a_transposed>
HWY_INLINE Ahead ahead(const Product& p, Depths depths, int64_t next_row, int64_t rows,
                       int64_t tiles) {
  if constexpr (a_transposed) {
    // A piece of a line, or of two, for each element of depth.
    return {p.a + depths.begin * p.a_stride + next_row, tiles > 1 ? rows - 1 : 0, p.a_stride,
            p.depth, 0};
  } else {
    // Some rows for each tile, one after the other.
    const int64_t step = (rows + tiles - 1) / tiles;
    const int64_t run = (depths.end - depths.begin + step - 1) / step;
    return {p.a + next_row * p.a_stride + depths.begin, p.a_stride * step, step, run,
            p.a_stride - run * step};
  }
}

// Rows [row, row + rows) of C over `depths`, while the part of A that belongs to `next_row` is on
// its way.
template <bool a_transposed>
void compute_rows(const Product& p, Depths depths, int64_t row, int64_t rows, int64_t next_row) {
  constexpr auto kLess = std::make_integer_sequence<int, kTileRows>();
  static constexpr auto kWide = kernels<2, a_transposed>(kLess);
  static constexpr auto kNarrow = kernels<1, a_transposed>(kLess);
  const int64_t tiles = (p.columns + 2 * kLanes - 1) / (2 * kLanes);
  const Ahead next = ahead<a_transposed>(p, depths, next_row, rows, tiles);
  const int64_t step = p.b_in_panels ? kPanel : p.columns;
  for (int64_t n = 0, tile = 0; n < p.columns; ++tile) {
    const bool wide = p.columns - n >= 2 * kLanes;
    const int64_t columns = wide ? 2 * kLanes : std::min(kLanes, p.columns - n);
    const float* b = p.b + (p.b_in_panels ? n / kPanel * kPanel * p.depth + n % kPanel : n) +
                     depths.begin * step;
    const float* fetched = next.first + (a_transposed ? tile % 2 : tile) * next.tile_step;
    (wide ? kWide : kNarrow)[static_cast<size_t>(rows - 1)](
        p, {row, n, columns, depths, b, step, fetched, next.depth_step, next.run, next.jump});
    n += columns;
  }
}

// All of C over `depths`.
void compute_depths(const Product& p, Depths depths) {
  const int64_t tiles = (p.rows + kTileRows - 1) / kTileRows;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t row = p.rows * t / tiles, next = p.rows * (t + 1) / tiles;
    (p.a_transposed ? compute_rows<true> : compute_rows<false>)(p, depths, row, next - row,
                                                                next < p.rows ? next : row);
  }
}

void multiply(const Product& p) {
  if (p.columns == 0) return;
  const int64_t near = kNearBytes / (p.columns * static_cast<int64_t>(sizeof(float)));
  // What C holds is added to the whole fold: it cannot wait there.
  const int64_t parts =
      p.accumulate ? 1 : std::max<int64_t>(1, p.depth / std::max<int64_t>(near, 1));
  for (int64_t part = 0; part < parts; ++part)
    compute_depths(p, {p.depth * part / parts, p.depth * (part + 1) / parts});
}

}  // namespace recmill::kernels::dense_layer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::dense_layer {
HWY_EXPORT(multiply);

void multiply(const Product& product) {
  HWY_DYNAMIC_DISPATCH(multiply)(product);
}

}  // namespace recmill::kernels::dense_layer
#endif  // HWY_ONCE
