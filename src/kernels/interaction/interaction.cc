// SPDX-License-Identifier: Apache-2.0
// A lane is a sample: as many samples as a vector has lanes go through at once, so that each sum
// stays in its lane and vectors need no shuffling but to come in from rows and to leave as rows.
#include "kernels/interaction/interaction.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "base/status.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/interaction/interaction.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/partial_vectors-inl.h"
#include "kernels/precision_vectors-inl.h"
#include "kernels/transpose-inl.h"

#ifndef RECMILL_KERNELS_INTERACTION_SCRATCH
#define RECMILL_KERNELS_INTERACTION_SCRATCH
namespace recmill::kernels::interaction {

// Vectors, and elements of a vector, that are computed at once, at most.
inline constexpr int64_t kTile = 4;
// The widest vector of floats.
inline constexpr int64_t kMostLanes = 16;

inline int64_t padded(int64_t size) {
  return (size + kTile - 1) / kTile * kTile;
}

inline int64_t below(int64_t row) {
  return row * (row - 1) / 2;
}  // pairs of the rows before

// A group of samples in the scratch memory; of each number one a lane. What pads is computed with
// and goes nowhere.
struct Scratch {
  int64_t columns;   // padded dim
  int64_t rows;      // padded vectors
  float* vectors;    // [rows][columns]
  float* gradients;  // [rows][columns]
  float* outputs;    // [copied + pairs of rows]

  Scratch(const InteractionSpec& s, float* memory)
      : columns(padded(s.dim)),
        rows(padded(s.vectors())),
        vectors(memory),
        gradients(vectors + rows * columns * kMostLanes),
        outputs(gradients + rows * columns * kMostLanes) {}

  static int64_t size(const InteractionSpec& s) {
    const int64_t rows = padded(s.vectors());
    return (2 * rows * padded(s.dim) + std::max(s.copied(), kTile) + below(rows)) * kMostLanes;
  }
};

}  // namespace recmill::kernels::interaction
#endif

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::interaction::HWY_NAMESPACE {
using namespace precision_vectors::HWY_NAMESPACE;
using partial_vectors::HWY_NAMESPACE::load_first;
using partial_vectors::HWY_NAMESPACE::store_first;
using transpose::HWY_NAMESPACE::transpose_columns;

using Floats = hn::CappedTag<float, kMostLanes>;
using Vector = hn::Vec<Floats>;
using Four = hn::FixedTag<float, 4>;
constexpr Floats kFloats;
constexpr int64_t kLanes = hn::MaxLanes(kFloats);
// Sums of kTileRows vectors and kTile elements fill the registers.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// The samples of a group: [first, first + count) of all.
struct Group {
  int64_t first, count, samples;
};

// Numbers by sample, `columns` at every `stride` elements, to a number a lane.
template <typename T>
void gather_by_sample(const Group& g, const T* from, int64_t stride, int64_t columns, float* to) {
  // Lanes without a sample hold the last one.
  const auto row = [&](int64_t lane)
                       HWY_ATTR { return from + (g.first + std::min(lane, g.count - 1)) * stride; };
  // The last four columns may overlap those before.
  for (int64_t next = 0; next < columns && columns >= 4; next += 4) {
    const int64_t k = std::min(next, columns - 4);
    transpose_columns(
        kFloats, [&](int64_t lane) HWY_ATTR { return load_elements(Four(), row(lane) + k); },
        [&](int64_t c, auto v) HWY_ATTR { hn::StoreU(v, kFloats, to + (k + c) * kLanes); });
  }
  for (int64_t k = 0; k < columns && columns < 4; ++k) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      to[k * kLanes + lane] = load_element(row(lane) + k);
    }
  }
}

// The other way round.
template <typename T>
void scatter_by_sample(const Group& g, const float* from, int64_t columns, T* to, int64_t stride) {
  for (int64_t next = 0; next < columns && columns >= kLanes; next += kLanes) {
    const int64_t k = std::min(next, columns - kLanes);
    for (int64_t lane = 0; lane < g.count; lane += 4) {
      transpose_columns(
          kFloats,
          [&](int64_t r) HWY_ATTR { return hn::LoadU(Four(), from + (k + r) * kLanes + lane); },
          [&](int64_t c, auto v) HWY_ATTR {
            if (lane + c >= g.count) return;
            store_elements(kFloats, v, to + (g.first + lane + c) * stride + k);
          });
    }
  }
  for (int64_t k = 0; k < columns && columns < kLanes; ++k) {
    for (int64_t lane = 0; lane < g.count; ++lane) {
      store_element(from[k * kLanes + lane], to + (g.first + lane) * stride + k);
    }
  }
}

// Numbers by feature, [columns][samples], to a number a lane, and back.
void gather_by_feature(const Group& g, const float* from, int64_t columns, float* to) {
  from += g.first;
  for (int64_t k = 0; k < columns; ++k, from += g.samples) {
    const auto v =
        g.count == kLanes ? hn::LoadU(kFloats, from) : load_first(kFloats, from, g.count);
    hn::StoreU(v, kFloats, to + k * kLanes);
  }
}
void scatter_by_feature(const Group& g, const float* from, int64_t columns, float* to) {
  to += g.first;
  for (int64_t k = 0; k < columns; ++k, to += g.samples) {
    const auto v = hn::LoadU(kFloats, from + k * kLanes);
    g.count == kLanes ? hn::StoreU(v, kFloats, to) : store_first(kFloats, v, to, g.count);
  }
}

// What is laid out as the dense layers want it.
template <typename T>
void gather(const InteractionSpec& s, const Group& g, const void* from, int64_t columns,
            float* to) {
  if (s.by_feature()) return gather_by_feature(g, static_cast<const float*>(from), columns, to);
  gather_by_sample(g, static_cast<const T*>(from), columns, columns, to);
}
template <typename T>
void scatter(const InteractionSpec& s, const Group& g, const float* from, int64_t columns,
             void* to) {
  if (s.by_feature()) return scatter_by_feature(g, from, columns, static_cast<float*>(to));
  scatter_by_sample(g, from, columns, static_cast<T*>(to), columns);
}

void gather_vectors(const InteractionSpec& s, const Group& g, const Vectors& from,
                    const Scratch& to) {
  float* row = to.vectors;
  if (s.bottom) {
    gather<float>(s, g, from.bottom, s.dim, row);
    row += to.columns * kLanes;
  }
  if (to.columns == s.dim) {
    return gather_by_sample(g, from.rows, from.row_stride, s.features * s.dim, row);
  }
  for (int64_t f = 0; f < s.features; ++f, row += to.columns * kLanes) {
    gather_by_sample(g, from.rows + f * s.dim, from.row_stride, s.dim, row);
  }
}

void scatter_gradients(const InteractionSpec& s, const Group& g, const Scratch& from,
                       const VectorGradients& to) {
  const float* row = from.gradients;
  if (s.bottom) {
    scatter<float>(s, g, row, s.dim, to.bottom);
    row += from.columns * kLanes;
  }
  if (from.columns == s.dim) {
    return scatter_by_sample(g, row, s.features * s.dim, to.rows, to.row_stride);
  }
  for (int64_t f = 0; f < s.features; ++f, row += from.columns * kLanes) {
    scatter_by_sample(g, row, s.dim, to.rows + f * s.dim, to.row_stride);
  }
}

HWY_INLINE Vector load(const float* numbers, int64_t index) {
  return hn::LoadU(kFloats, numbers + index * kLanes);
}

// Calls body(r, c) for each sum of a tile, unrolled.
template <typename Body>
HWY_INLINE void for_tile(const Body& body) {
#pragma GCC unroll 4
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < kTile; ++c) body(r, c);
  }
}

// Dots of the vectors [i, i + kTileRows) with [j, j + kTile), as far as they are below the
// diagonal.
void dot_tile(const InteractionSpec& s, const Scratch& m, int64_t i, int64_t j) {
  Vector sums[kTileRows][kTile];
  for_tile([&](int r, int c) HWY_ATTR { sums[r][c] = hn::Zero(kFloats); });
  for (int64_t d = 0; d < s.dim; ++d) {
    Vector right[kTile];
#pragma GCC unroll 4
    for (int c = 0; c < kTile; ++c) right[c] = load(m.vectors, (j + c) * m.columns + d);
#pragma GCC unroll 4
    for (int r = 0; r < kTileRows; ++r) {
      const Vector left = load(m.vectors, (i + r) * m.columns + d);
#pragma GCC unroll 4
      for (int c = 0; c < kTile; ++c) sums[r][c] = hn::MulAdd(left, right[c], sums[r][c]);
    }
  }
  float* triangle = m.outputs + s.copied() * kLanes;
  for_tile([&](int r, int c) HWY_ATTR {
    if (j + c >= i + r) return;
    hn::StoreU(sums[r][c], kFloats, triangle + (below(i + r) + j + c) * kLanes);
  });
}

// dv[i, i + kTileRows) of the elements [d, d + kTile).
void gradient_tile(const InteractionSpec& s, const Scratch& m, int64_t i, int64_t d) {
  const float* triangle = m.outputs + s.copied() * kLanes;
  Vector sums[kTileRows][kTile];
  for_tile([&](int r, int c) HWY_ATTR {
    sums[r][c] = s.bottom && i + r == 0 ? load(m.outputs, d + c) : hn::Zero(kFloats);
  });
  // Adds what vector j contributes to those r for which weight(r) is not null.
  const auto add = [&](int64_t j, const auto& weight) HWY_ATTR {
    Vector right[kTile];
#pragma GCC unroll 4
    for (int c = 0; c < kTile; ++c) right[c] = load(m.vectors, j * m.columns + d + c);
#pragma GCC unroll 4
    for (int r = 0; r < kTileRows; ++r) {
      const int64_t pair = weight(r);
      if (pair < 0) continue;
      const Vector left = load(triangle, pair);
#pragma GCC unroll 4
      for (int c = 0; c < kTile; ++c) sums[r][c] = hn::MulAdd(left, right[c], sums[r][c]);
    }
  };
  const int64_t end = std::min(i + kTileRows, s.vectors());
  for (int64_t j = 0; j < i; ++j) {
    add(j, [&](int r) HWY_ATTR { return below(i + r) + j; });
  }
  for (int64_t j = i; j < end; ++j) {
    add(j, [&](int r) HWY_ATTR {
      if (j == i + r) return int64_t{-1};
      return j < i + r ? below(i + r) + j : below(j) + i + r;
    });
  }
  for (int64_t j = end; j < s.vectors(); ++j) {
    add(j, [&](int r) HWY_ATTR { return below(j) + i + r; });
  }
  for_tile([&](int r, int c) HWY_ATTR {
    hn::StoreU(sums[r][c], kFloats, m.gradients + ((i + r) * m.columns + d + c) * kLanes);
  });
}

// Rows of the samples that follow, while this group is computed: their lines lie far apart.
void fetch_rows(const InteractionSpec& s, const Group& g, const Vectors& vectors) {
  const int64_t end = std::min(g.first + g.count + kLanes, g.samples);
  for (int64_t i = g.first + g.count; i < end; ++i) {
    const float* row = vectors.rows + i * vectors.row_stride;
    for (int64_t k = 0; k < s.features * s.dim; k += 16) __builtin_prefetch(row + k);
  }
}

template <typename T>
void forward_groups(const InteractionSpec& s, int64_t samples, const Vectors& vectors, void* out,
                    float* memory) {
  const Scratch m(s, memory);
  for (int64_t first = 0; first < samples; first += kLanes) {
    const Group g{first, std::min(kLanes, samples - first), samples};
    gather_vectors(s, g, vectors, m);
    fetch_rows(s, g, vectors);
    std::copy_n(m.vectors, s.copied() * kLanes, m.outputs);
    for (int64_t i = 0; i < s.vectors(); i += kTileRows) {
      for (int64_t j = 0; j < i + kTileRows; j += kTile) dot_tile(s, m, i, j);
    }
    scatter<T>(s, g, m.outputs, s.outputs(), out);
  }
}

template <typename T>
void backward_groups(const InteractionSpec& s, int64_t samples, const Vectors& vectors,
                     const void* gradient, const VectorGradients& to, float* memory) {
  const Scratch m(s, memory);
  for (int64_t first = 0; first < samples; first += kLanes) {
    const Group g{first, std::min(kLanes, samples - first), samples};
    gather_vectors(s, g, vectors, m);
    fetch_rows(s, g, vectors);
    gather<T>(s, g, gradient, s.outputs(), m.outputs);
    for (int64_t d = 0; d < s.dim; d += kTile) {
      for (int64_t i = 0; i < s.vectors(); i += kTileRows) gradient_tile(s, m, i, d);
    }
    scatter_gradients(s, g, m, to);
  }
}

void forward(const InteractionSpec& s, int64_t samples, const Vectors& vectors, void* out,
             float* scratch) {
  const auto f = s.by_feature() ? forward_groups<float> : forward_groups<BFloat16>;
  f(s, samples, vectors, out, scratch);
}

void backward(const InteractionSpec& s, int64_t samples, const Vectors& vectors,
              const void* out_gradient, const VectorGradients& gradients, float* scratch) {
  const auto f = s.by_feature() ? backward_groups<float> : backward_groups<BFloat16>;
  f(s, samples, vectors, out_gradient, gradients, scratch);
}

}  // namespace recmill::kernels::interaction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::interaction {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

int64_t scratch_size(const InteractionSpec& spec) {
  return Scratch::size(spec);
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
