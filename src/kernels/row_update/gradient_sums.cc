// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_update/gradient_sums.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_update/gradient_sums.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/row_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// out = a + b, all [dim]; out may be a.
HWY_INLINE void add_rows(float* out, const float* a, const float* b, int64_t dim) {
  int64_t e = 0;
  for (; e + kLanes <= dim; e += kLanes)
    hn::StoreU(hn::Add(hn::LoadU(kFloats, a + e), hn::LoadU(kFloats, b + e)), kFloats, out + e);
  for (; e < dim; ++e) out[e] = a[e] + b[e];
}

/// Short ones without a call.
HWY_INLINE void copy_row(float* out, const float* from, int64_t dim) {
  int64_t e = 0;
  for (; e + kLanes <= dim; e += kLanes) hn::StoreU(hn::LoadU(kFloats, from + e), kFloats, out + e);
  for (; e < dim; ++e) out[e] = from[e];
}

HWY_INLINE void fetch_row(const float* row, int64_t dim) {
  for (int64_t e = 0; e < dim; e += 16) __builtin_prefetch(row + e);
}

/// A node of the tree whose sum is at hand: `first` is its first slice.
struct Node {
  float* sum;
  int first;
};

/// Adds nodes of one tree up, in place, into nodes[0]: at each level those that have the same
/// parent. Absent nodes are skipped.
HWY_INLINE void add_tree(Node* nodes, int64_t count, int64_t dim) {
  for (int level = 1; count > 1; ++level) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (kept > 0 && nodes[kept - 1].first >> level == nodes[i].first >> level) {
        add_rows(nodes[kept - 1].sum, nodes[kept - 1].sum, nodes[i].sum, dim);
      } else {
        nodes[kept++] = nodes[i];
      }
    }
    count = kept;
  }
}

constexpr int kDeepest = 17;  // parts that wait for their siblings: slices are 16 bits

/// Sums one row over one subtree, column block by column block, in registers.
template <bool kScaled>
class RowSummer {
 public:
  explicit RowSummer(const GradientSource& source)
      : sources_(source.distinct->sources.data()),
        lookups_(source.distinct->lookups()),
        gradients_(source.gradients.data()),
        counts_(source.distinct->counts.empty() ? nullptr : source.distinct->counts.data()),
        weights_(source.distinct->weights.empty() ? nullptr : source.distinct->weights.data()),
        dim_(source.dim),
        ahead_(source.ahead) {}

  /// out [dim] = the tree over the folds of lookups [begin, end), +0 when there are none.
  HWY_INLINE void sum(int64_t begin, int64_t end, float* out) const {
    switch (end - begin) {
      case 0:
        return static_cast<void>(std::fill_n(out, dim_, 0.0f));
      case 1:
        return sum_few<1>(begin, out);
      case 2:
        return sum_few<2>(begin, out);
      case 3:
        return sum_few<3>(begin, out);
      default:
        by_columns([&]<int64_t kVectors, bool kTail>(int64_t column) {
          block<kVectors, kTail>(begin, end, column, out);
        });
    }
  }

 private:
  /// kCount lookups from `begin` on, 1, 2 or 3: without a branch on their slices, which cannot be
  /// predicted.
  template <int64_t kCount>
  HWY_INLINE void sum_few(int64_t begin, float* out) const {
    int64_t order[3] = {begin, begin + 1, begin + 2};
    if constexpr (kCount == 3) {
      // (a + b) + c, or (b + c) + a when b and c meet first in the tree.
      const int64_t turn = (sources_[begin].slice ^ sources_[begin + 1].slice) >
                           (sources_[begin + 1].slice ^ sources_[begin + 2].slice);
      order[0] += turn, order[1] += turn, order[2] -= 2 * turn;
    }
    const float* rows[kCount];
    for (int64_t n = 0; n < kCount; ++n) {
      fetch_ahead(begin + n, 0, dim_);
      rows[n] = row_of(order[n]);
    }
    by_columns([&]<int64_t kVectors, bool kTail>(int64_t column) {
      Floats sum[kVectors];
      for (int64_t k = 0; k < kVectors; ++k) sum[k] = hn::Zero(kFloats);
      for (int64_t n = 0; n < kCount; ++n)
        add<kVectors, kTail>(rows[n] + column, order[n], column, sum);
      store<kVectors, kTail>(sum, column, out);
    });
  }

  /// Columns [column, column + columns) of a lookup that comes soon after `lookup`.
  HWY_INLINE void fetch_ahead(int64_t lookup, int64_t column, int64_t columns) const {
    if (lookup + ahead_ >= lookups_) return;
    const float* row = row_of(lookup + ahead_) + column;
    for (int64_t e = 0; e < columns; e += 16) __builtin_prefetch(row + e);
  }

  template <class Block>
  HWY_INLINE void by_columns(const Block& block) const {
    int64_t column = 0;
    for (; column + 8 * kLanes <= dim_; column += 8 * kLanes)
      block.template operator()<8, false>(column);
    if (column + 4 * kLanes <= dim_) {
      block.template operator()<4, false>(column);
      column += 4 * kLanes;
    }
    if (column + 2 * kLanes <= dim_) {
      block.template operator()<2, false>(column);
      column += 2 * kLanes;
    }
    if (column + kLanes <= dim_) {
      block.template operator()<1, false>(column);
      column += kLanes;
    }
    if (column < dim_) block.template operator()<1, true>(column);
  }

  /// sum += columns of lookup `lookup`, whose gradient's columns begin at `row`.
  template <int64_t kVectors, bool kTail>
  HWY_INLINE void add(const float* row, int64_t lookup, int64_t column, Floats* sum) const {
    for (int64_t k = 0; k < kVectors; ++k) {
      const Floats gradient =
          kTail ? load_first(row, dim_ - column) : hn::LoadU(kFloats, row + k * kLanes);
      sum[k] = hn::Add(sum[k], scaled(gradient, lookup));
    }
  }

  template <int64_t kVectors, bool kTail>
  HWY_INLINE void store(const Floats* sum, int64_t column, float* out) const {
    for (int64_t k = 0; k < kVectors; ++k) {
      if constexpr (kTail) {
        store_first(sum[k], out + column, dim_ - column);
      } else {
        hn::StoreU(sum[k], kFloats, out + column + k * kLanes);
      }
    }
  }

  HWY_INLINE const float* row_of(int64_t lookup) const {
    const LookupSource from = sources_[lookup];
    const GradientRows& rows = gradients_[from.feature];
    return rows.data + static_cast<int64_t>(from.gradient_row) * rows.stride;
  }

  HWY_INLINE Floats scaled(Floats gradient, int64_t lookup) const {
    if constexpr (kScaled) {
      if (counts_ != nullptr) gradient = hn::Div(gradient, hn::Set(kFloats, counts_[lookup]));
      if (weights_ != nullptr) gradient = hn::Mul(gradient, hn::Set(kFloats, weights_[lookup]));
    }
    return gradient;
  }

  /// Folds the lookups of the slice that lookup `j` lies in; returns the first one behind them.
  template <int64_t kVectors, bool kTail>
  HWY_INLINE int64_t fold(int64_t j, int64_t end, int64_t column, Floats* sum) const {
    const uint16_t slice = sources_[j].slice;
    for (int64_t k = 0; k < kVectors; ++k) sum[k] = hn::Zero(kFloats);
    do {
      fetch_ahead(j, column, kVectors * kLanes);
      add<kVectors, kTail>(row_of(j) + column, j, column, sum);
      ++j;
    } while (j < end && sources_[j].slice == slice);
    return j;
  }

  template <int64_t kVectors, bool kTail>
  HWY_INLINE void block(int64_t begin, int64_t end, int64_t column, float* out) const {
    Floats sum[kVectors];
    unsigned slice = sources_[begin].slice;
    int64_t j = fold<kVectors, kTail>(begin, end, column, sum);
    if (j < end) {
      // Sums of finished subtrees wait until the subtree beside them is finished too. Of slices
      // a < b < c, b's common subtree with a is inside that with c when (a ^ b) < (b ^ c).
      Floats waiting[kDeepest][kVectors];
      unsigned slices[kDeepest];
      int depth = 0;
      const auto join = [&] {
        --depth;
        for (int64_t k = 0; k < kVectors; ++k) sum[k] = hn::Add(waiting[depth][k], sum[k]);
      };
      while (j < end) {
        const unsigned next = sources_[j].slice;
        while (depth > 0 && (slices[depth - 1] ^ slice) < (slice ^ next)) join();
        for (int64_t k = 0; k < kVectors; ++k) waiting[depth][k] = sum[k];
        slices[depth++] = slice;
        slice = next;
        j = fold<kVectors, kTail>(j, end, column, sum);
      }
      while (depth > 0) join();
    }
    store<kVectors, kTail>(sum, column, out);
  }

  const LookupSource* sources_;
  int64_t lookups_;
  const GradientRows* gradients_;
  const float* counts_;
  const float* weights_;
  int64_t dim_;
  int64_t ahead_;
};

bool is_scaled(const GradientSource& source) {
  return !source.distinct->counts.empty() || !source.distinct->weights.empty();
}

template <bool kScaled>
void sum_range(const GradientSource& source, const SumRange& range,
               std::span<const SliceRange> subtrees, float* out) {
  const DistinctRows& distinct = *source.distinct;
  const RowSummer<kScaled> summer(source);
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t row = range.order != nullptr ? range.order[i] : range.begin + i;
    int64_t begin = distinct.begins[row];
    const int64_t end_of_row = distinct.begins[row + 1];
    for (const SliceRange& subtree : subtrees) {
      int64_t end = end_of_row;
      if (subtrees.size() > 1) {
        end = begin;
        while (end < end_of_row && distinct.sources[end].slice < subtree.end) ++end;
      }
      summer.sum(begin, end, out);
      out += source.dim;
      begin = end;
    }
  }
}

void SumGradients(const GradientSource& source, const SumRange& range,
                  std::span<const SliceRange> subtrees, float* out) {
  if (is_scaled(source)) {
    sum_range<true>(source, range, subtrees, out);
  } else {
    sum_range<false>(source, range, subtrees, out);
  }
}

template <bool kScaled>
void sum_to(const GradientSource& source, int64_t begin, int64_t count, float* const* outs) {
  const RowSummer<kScaled> summer(source);
  const int64_t* const begins = source.distinct->begins.data() + begin;
  for (int64_t i = 0; i < count; ++i)
    if (outs[i] != nullptr) summer.sum(begins[i], begins[i + 1], outs[i]);
}

void SumGradientsTo(const GradientSource& source, int64_t begin, int64_t count,
                    float* const* outs) {
  if (is_scaled(source)) {
    sum_to<true>(source, begin, count, outs);
  } else {
    sum_to<false>(source, begin, count, outs);
  }
}

/// out = the sum of parts[0 .. count), at least three, [dim].
void sum_many_parts(const GradientPart* parts, size_t count, int64_t dim, float* out,
                    std::vector<float>& copies, std::vector<Node>& nodes) {
  nodes.clear();
  copies.resize(count * dim);
  for (size_t p = 0; p < count; ++p) {
    float* sum = nodes.empty() ? out : copies.data() + p * dim;
    std::copy_n(parts[p].data, dim, sum);
    nodes.push_back({sum, parts[p].first});
  }
  add_tree(nodes.data(), static_cast<int64_t>(count), dim);
}

void SumParts(const RowParts& rows, int64_t begin, int64_t count, int64_t dim, float* out) {
  constexpr int64_t kAhead = 8;  // parts that are fetched ahead
  std::vector<float> copies;
  std::vector<Node> nodes;
  for (int64_t i = begin; i < begin + count; ++i, out += dim) {
    const int64_t first = rows.begins[i], parts = rows.begins[i + 1] - first;
    const GradientPart* const of_row = rows.parts.data() + first;
    for (int64_t p = first + kAhead; p < first + kAhead + parts; ++p)
      if (p < std::ssize(rows.parts)) fetch_row(rows.parts[p].data, dim);
    if (parts == 0) {
      std::fill_n(out, dim, 0.0f);
    } else if (parts == 1) {
      copy_row(out, of_row[0].data, dim);
    } else if (parts == 2) {
      add_rows(out, of_row[0].data, of_row[1].data, dim);
    } else {
      sum_many_parts(of_row, static_cast<size_t>(parts), dim, out, copies, nodes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels {

HWY_EXPORT(SumGradients);
HWY_EXPORT(SumGradientsTo);
HWY_EXPORT(SumParts);

void sum_gradients(const GradientSource& source, const SumRange& range,
                   std::span<const SliceRange> subtrees, float* out) {
  HWY_DYNAMIC_DISPATCH(SumGradients)(source, range, subtrees, out);
}

void sum_gradients(const GradientSource& source, int64_t begin, int64_t count, float* const* outs) {
  HWY_DYNAMIC_DISPATCH(SumGradientsTo)(source, begin, count, outs);
}

void sum_parts(const RowParts& rows, int64_t begin, int64_t count, int64_t dim, float* out) {
  HWY_DYNAMIC_DISPATCH(SumParts)(rows, begin, count, dim, out);
}

}  // namespace recmill::kernels
#endif
