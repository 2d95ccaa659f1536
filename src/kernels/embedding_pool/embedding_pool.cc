// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/embedding_pool.h"

#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding_pool/embedding_pool.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/row_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// Lookups that rows are fetched ahead: some 4 KiB to 16 KiB in flight for each core.
constexpr int64_t kPrefetchLookups = 64;

HWY_INLINE void prefetch(const std::byte* begin, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(begin + at);
  if (bytes % 64 != 0) __builtin_prefetch(begin + bytes - 1);
}

/// Columns [column, column + kVectors * kLanes) of a row, or `tail` columns (then kVectors is 1).
template <class Row, size_t kVectors, bool kTail, bool kWeighted>
class ColumnBlock {
 public:
  ColumnBlock(const PoolTask& task, int64_t column, int64_t tail)
      : task_(task),
        rows_(task.bags.rows),
        base_(task.rows.data + column * Row::kBytes),
        bytes_((kTail ? tail : static_cast<int64_t>(kVectors) * kLanes) * Row::kBytes),
        end_(task.bags.offsets[task.bags.samples]),
        column_(column),
        tail_(tail) {}

  void pool(int64_t first, int64_t last) const {
    const int64_t* offsets = task_.bags.offsets;
    const bool mean = task_.pooling == Pooling::mean;
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = offsets[i], end = offsets[i + 1];
      Floats total[kVectors];
      fold(begin, std::min(begin + kPoolRun, end), total);
      for (int64_t run = begin + kPoolRun; run < end; run += kPoolRun) {
        Floats sum[kVectors];
        fold(run, std::min(run + kPoolRun, end), sum);
        for (size_t k = 0; k < kVectors; ++k) total[k] = hn::Add(total[k], sum[k]);
      }
      if (mean && end - begin > 1) {
        const Floats count = hn::Set(kFloats, static_cast<float>(end - begin));
        for (size_t k = 0; k < kVectors; ++k) total[k] = hn::Div(total[k], count);
      }
      store(total, i);
    }
  }

  /// Bags of exactly one lookup: no offsets to read.
  void pool_one_each(int64_t first, int64_t last) const {
    const int64_t begin = task_.bags.offsets[0];
    for (int64_t i = first; i < last; ++i) {
      Floats total[kVectors];
      fold(begin + i, begin + i + 1, total);
      store(total, i);
    }
  }

  /// Rows as they are, lookup by lookup.
  void copy(int64_t first, int64_t last) const {
    const int64_t begin = task_.bags.offsets[0];
    for (int64_t j = task_.bags.offsets[first]; j < task_.bags.offsets[last]; ++j) {
      Floats row[kVectors];
      load(j, row);
      store(row, j - begin);
    }
  }

 private:
  HWY_INLINE void load(int64_t lookup, Floats* row) const {
    if (lookup + kPrefetchLookups < end_)
      prefetch(base_ + rows_[lookup + kPrefetchLookups] * task_.rows.stride, bytes_);
    const std::byte* at = base_ + rows_[lookup] * task_.rows.stride;
    for (size_t k = 0; k < kVectors; ++k) {
      row[k] = kTail ? Row::load_first(at, tail_) : Row::load(at + k * kLanes * Row::kBytes);
    }
    if constexpr (kWeighted) {
      const Floats weight = hn::Set(kFloats, task_.bags.weights[lookup]);
      for (size_t k = 0; k < kVectors; ++k) row[k] = hn::Mul(weight, row[k]);
    }
  }

  HWY_INLINE void fold(int64_t begin, int64_t end, Floats* sum) const {
    for (size_t k = 0; k < kVectors; ++k) sum[k] = hn::Zero(kFloats);
    for (int64_t j = begin; j < end; ++j) {
      Floats row[kVectors];
      load(j, row);
      for (size_t k = 0; k < kVectors; ++k) sum[k] = hn::Add(sum[k], row[k]);
    }
  }

  HWY_INLINE void store(const Floats* value, int64_t index) const {
    float* out = task_.out + index * task_.stride + column_;
    if constexpr (kTail) {
      store_first(value[0], out, tail_);
    } else {
      for (size_t k = 0; k < kVectors; ++k) hn::StoreU(value[k], kFloats, out + k * kLanes);
    }
  }

  const PoolTask& task_;
  const int64_t* rows_;
  const std::byte* base_;
  int64_t bytes_;
  int64_t end_;
  int64_t column_;
  int64_t tail_;
};

template <class Block>
void pool_block(const PoolTask& task, const Block& block, int64_t first, int64_t last) {
  if (task.pooling == Pooling::none) {
    block.copy(first, last);
  } else if (task.bags.one_each) {
    block.pool_one_each(first, last);
  } else {
    block.pool(first, last);
  }
}

template <class Row, bool kWeighted>
void pool_columns(const PoolTask& task, int64_t first, int64_t last) {
  const int64_t dim = task.rows.dim;
  int64_t column = 0;
  const auto blocks = [&]<size_t kVectors>(std::integral_constant<size_t, kVectors>) {
    for (; dim - column >= static_cast<int64_t>(kVectors) * kLanes; column += kVectors * kLanes)
      pool_block(task, ColumnBlock<Row, kVectors, false, kWeighted>(task, column, 0), first, last);
  };
  blocks(std::integral_constant<size_t, 8>());
  blocks(std::integral_constant<size_t, 4>());
  blocks(std::integral_constant<size_t, 2>());
  blocks(std::integral_constant<size_t, 1>());
  if (column < dim)
    pool_block(task, ColumnBlock<Row, 1, true, kWeighted>(task, column, dim - column), first, last);
}

template <class Row>
void pool_rows(const PoolTask& task, int64_t first, int64_t last) {
  if (task.bags.weights != nullptr) {
    pool_columns<Row, true>(task, first, last);
  } else {
    pool_columns<Row, false>(task, first, last);
  }
}

/// Samples [first, last) of one task.
void PoolTile(const PoolTask& task, int64_t first, int64_t last) {
  switch (task.rows.precision) {
    case RowPrecision::float32:
      return pool_rows<Float32Row>(task, first, last);
    case RowPrecision::bfloat16:
      return pool_rows<BFloat16Row>(task, first, last);
    case RowPrecision::float16:
      return pool_rows<Float16Row>(task, first, last);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels {

HWY_EXPORT(PoolTile);

namespace {
/// Floats that one tile reads, so that tiles cost alike whatever the bags and dimensions.
constexpr int64_t kTileFloats = 64 * 1024;
}  // namespace

void embedding_pool(std::span<const PoolTask> tasks, Pool& pool) {
  struct Tile {
    const PoolTask* task;
    int64_t first;
    int64_t last;
  };
  std::vector<Tile> tiles;
  for (const auto& task : tasks) {
    const int64_t samples = task.bags.samples;
    if (samples == 0) continue;
    const int64_t floats = (task.bags.lookups() + samples) * task.rows.dim;
    const int64_t pieces = std::clamp<int64_t>(floats / kTileFloats, 1, samples);
    for (int64_t piece = 0; piece < pieces; ++piece)
      tiles.push_back({&task, piece * samples / pieces, (piece + 1) * samples / pieces});
  }
  pool.run(static_cast<int64_t>(tiles.size()), [&](int64_t t) {
    HWY_DYNAMIC_DISPATCH(PoolTile)(*tiles[t].task, tiles[t].first, tiles[t].last);
  });
}

}  // namespace recmill::kernels
#endif
