// SPDX-License-Identifier: Apache-2.0
// Templates `bags`, one bag after the other, each sum in registers, and `one_each`, bags of exactly
// one lookup, no offsets to read. Included once for each instruction set (Highway's
// foreach_target).

#if defined(RECMILL_KERNELS_EMBEDDING_POOL_BAGS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_EMBEDDING_POOL_BAGS_INL_H_
#undef RECMILL_KERNELS_EMBEDDING_POOL_BAGS_INL_H_
#else
#define RECMILL_KERNELS_EMBEDDING_POOL_BAGS_INL_H_
#endif

#include <algorithm>

#include "kernels/embedding_pool/pool_template.h"
#include "kernels/embedding_pool/row_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// How sums reach the output.
enum class PoolStore : int64_t { plain, fetched, streamed };

/// Samples whose output is fetched ahead of their sums (PoolStore::fetched).
constexpr int64_t kFetchedSamples = 8;

struct BagsParameters {
  int64_t fetch;                       // lookups that rows are fetched ahead; 0: not
  PoolStore store = PoolStore::plain;  // streamed: for whole cache lines of an aligned output
  int64_t ids = 0;                     // lookups that ids are fetched ahead; 0: not
};

/// Fetches a piece's ids ahead of their use: the processor does so by itself, but not far enough
/// to keep up with rows that are in a core's own cache.
class IdFetch {
 public:
  IdFetch(const PoolPiece& piece, int64_t ahead)
      : ids_(piece.task->bags.rows),
        ahead_(ahead),
        next_(piece.task->bags.offsets[piece.first]),
        end_(piece.task->bags.offsets[piece.task->bags.samples]) {}

  /// Before the lookups until `end` are worked through.
  HWY_INLINE void reach(int64_t end) {
    if (ahead_ == 0) return;
    constexpr int64_t kIdsOfLine = 64 / sizeof(int64_t);
    for (const int64_t until = std::min(end + ahead_, end_); next_ < until; next_ += kIdsOfLine)
      __builtin_prefetch(ids_ + next_);
  }

 private:
  const int64_t* ids_;
  int64_t ahead_;
  int64_t next_, end_;
};

/// Reads all of the rows in order, so that lookups find them in the core's cache.
inline void read_rows(const RowStorage& rows) {
  const hn::ScalableTag<uint64_t> words;
  auto all = hn::Zero(words);
  const std::byte* const end = rows.data + rows.count * rows.stride;
  const std::byte* at = rows.data;
  constexpr int64_t kWord = static_cast<int64_t>(hn::MaxLanes(words)) * 8;
  for (; at + 64 <= end; at += 64)
    all = hn::Or(all, hn::LoadU(words, reinterpret_cast<const uint64_t*>(at)));
  static_assert(kWord <= 64);
  // A use that the compiler cannot leave out.
  asm volatile("" ::"r"(hn::GetLane(all)));
}

/// What a template does first; `wanted`: its schedule stages the table.
HWY_INLINE void stage(const PoolPiece& piece, bool wanted) {
  if (wanted && piece.staging) read_rows(piece.task->rows);
}

/// One block of columns of the bags of a piece.
template <class Columns, bool kWeighted, bool kFetch>
class BagColumns {
 public:
  using Vector = typename Columns::Vector;

  BagColumns(const PoolTask& task, Columns columns, const BagsParameters& parameters)
      : rows_(task.bags.rows),
        weights_(task.bags.weights),
        data_(columns.of(task.rows.data)),
        row_bytes_(task.rows.stride),
        columns_(columns),
        fetch_(parameters.fetch) {}

  /// sum = lookups [begin, end) folded from +0; rows are fetched as far as lookup `last`.
  HWY_INLINE void fold(int64_t begin, int64_t end, int64_t last, Vector* sum) const {
    for (size_t k = 0; k < Columns::kVectors; ++k) sum[k] = hn::Zero(Columns::kTag);
    for (int64_t j = begin; j < end; ++j) {
      fetch_before(j, last);
      add(j, sum);
    }
  }
  /// Fetches the row of the lookup that comes so much later than `lookup`, if it is before `last`.
  HWY_INLINE void fetch_before(int64_t lookup, int64_t last) const {
    if constexpr (kFetch) {
      if (lookup + fetch_ < last) columns_.fetch(row(lookup + fetch_));
    }
  }

  /// sum = the bag of lookups [begin, end): runs folded, their sums folded, divided for a mean.
  HWY_INLINE void pool(int64_t begin, int64_t end, int64_t last, bool mean, IdFetch& ids,
                       Vector* sum) const {
    const int64_t first_end = std::min(begin + kPoolRun, end);
    ids.reach(first_end);
    fold(begin, first_end, last, sum);
    for (int64_t run = begin + kPoolRun; run < end; run += kPoolRun) {
      Vector next[Columns::kVectors];
      ids.reach(std::min(run + kPoolRun, end));
      fold(run, std::min(run + kPoolRun, end), last, next);
      for (size_t k = 0; k < Columns::kVectors; ++k) sum[k] = hn::Add(sum[k], next[k]);
    }
    if (mean) divide(end - begin, sum);
  }

  /// The mean of a bag of `count` lookups from its sum.
  HWY_INLINE void divide(int64_t count, Vector* sum) const {
    if (count < 2) return;
    const Vector divisor = hn::Set(Columns::kTag, static_cast<float>(count));
    for (size_t k = 0; k < Columns::kVectors; ++k) sum[k] = hn::Div(sum[k], divisor);
  }

  /// The row of `lookup`, weighted.
  HWY_INLINE void load(int64_t lookup, Vector* to) const {
    columns_.load(row(lookup), to);
    if constexpr (kWeighted) {
      const Vector weight = hn::Set(Columns::kTag, weights_[lookup]);
      for (size_t k = 0; k < Columns::kVectors; ++k) to[k] = hn::Mul(weight, to[k]);
    }
  }
  /// sum = sum + the row of `lookup`, weighted.
  HWY_INLINE void add(int64_t lookup, Vector* sum) const {
    Vector loaded[Columns::kVectors];
    load(lookup, loaded);
    for (size_t k = 0; k < Columns::kVectors; ++k) sum[k] = hn::Add(sum[k], loaded[k]);
  }

 private:
  HWY_INLINE const std::byte* row(int64_t lookup) const {
    return data_ + rows_[lookup] * row_bytes_;
  }

  const int64_t* rows_;
  const float* weights_;
  const std::byte* data_;  // where the columns of row 0 begin
  int64_t row_bytes_;
  Columns columns_;
  int64_t fetch_;
};

/// Whether sums can be streamed: every sample's output begins on a cache line.
HWY_INLINE bool on_cache_lines(const PoolTask& task) {
  return reinterpret_cast<uintptr_t>(task.out) % 64 == 0 && task.stride % 16 == 0;
}

template <class Row, bool kWeighted, bool kFetch, size_t kHeld, bool kOneEach>
void pool_bags(const PoolPiece& piece, const BagsParameters& parameters) {
  const PoolTask& task = *piece.task;
  const int64_t* const offsets = task.bags.offsets;
  const int64_t begin = offsets[0], last = offsets[piece.last];
  const bool mean = task.pooling == Pooling::mean;
  const bool streamed = parameters.store == PoolStore::streamed && on_cache_lines(task);
  by_columns<Row, kHeld>(task.rows.dim, [&](auto columns) {
    using Columns = decltype(columns);
    const BagColumns<Columns, kWeighted, kFetch> bags(task, columns, parameters);
    const bool whole_lines = streamed && columns.count() % 16 == 0;
    // Copies of what the stores could otherwise change, for all that the compiler knows.
    const int64_t stride = task.stride, first = piece.first, end = piece.last;
    const bool fetched = parameters.store == PoolStore::fetched;
    float* out = task.out + first * stride + columns.column();
    IdFetch ids(piece, parameters.ids);
    for (int64_t i = first; i < end; ++i, out += stride) {
      if (fetched && i + kFetchedSamples < end)
        __builtin_prefetch(out + kFetchedSamples * stride, 1);
      typename Columns::Vector sum[Columns::kVectors];
      if constexpr (kOneEach) {
        ids.reach(begin + i + 1);
        bags.fold(begin + i, begin + i + 1, last, sum);
      } else {
        bags.pool(offsets[i], offsets[i + 1], last, mean, ids, sum);
      }
      if (whole_lines) {
        columns.stream(sum, out);
      } else {
        columns.store(sum, out);
      }
    }
  });
  if (streamed) hwy::FlushStream();
}

/// Calls body(Row, weighted) with the types of the task's rows.
template <class Body>
HWY_INLINE void with_row_class(const PoolTask& task, const Body& body) {
  const auto with_weights = [&](auto row) {
    if (task.bags.weights != nullptr) {
      body(row, std::true_type());
    } else {
      body(row, std::false_type());
    }
  };
  switch (task.rows.precision) {
    case RowPrecision::float32:
      return with_weights(Float32Row());
    case RowPrecision::bfloat16:
      return with_weights(BFloat16Row());
    case RowPrecision::float16:
      return with_weights(Float16Row());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
