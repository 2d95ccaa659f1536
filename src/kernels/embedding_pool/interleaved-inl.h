// SPDX-License-Identifier: Apache-2.0
// Templates that keep several sums under way at once, so that additions of one do not wait for each
// other: `bags_interleaved`, bags of neighbouring samples in lock step, and `runs_interleaved`,
// runs of one long bag. Included once for each instruction set (Highway's foreach_target).

#if defined(RECMILL_KERNELS_EMBEDDING_POOL_INTERLEAVED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_EMBEDDING_POOL_INTERLEAVED_INL_H_
#undef RECMILL_KERNELS_EMBEDDING_POOL_INTERLEAVED_INL_H_
#else
#define RECMILL_KERNELS_EMBEDDING_POOL_INTERLEAVED_INL_H_
#endif

#include "kernels/embedding_pool/bags-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

/// Sums under way of one block of columns: kWays folds side by side.
template <class Columns, bool kWeighted, int kWays>
class InterleavedFolds {
 public:
  using Bags = BagColumns<Columns, kWeighted, true>;
  using Vector = typename Columns::Vector;
  static constexpr size_t kVectors = Columns::kVectors;

  InterleavedFolds(const Bags& bags, int64_t last) : bags_(bags), last_(last) {}

  /// sums[w] = lookups [begin[w], begin[w] + count) folded from +0, for each way w.
  HWY_INLINE void fold(const int64_t* begin, int64_t count, Vector (*sums)[kVectors]) const {
    for (int w = 0; w < kWays; ++w) {
      for (size_t k = 0; k < kVectors; ++k) sums[w][k] = hn::Zero(Columns::kTag);
    }
    for (int64_t j = 0; j < count; ++j) {
      for (int w = 0; w < kWays; ++w) {
        bags_.fetch_before(begin[w] + j, last_);
        bags_.add(begin[w] + j, sums[w]);
      }
    }
  }

  /// sum goes on over lookups [begin, end).
  HWY_INLINE void go_on(int64_t begin, int64_t end, Vector* sum) const {
    for (int64_t j = begin; j < end; ++j) {
      bags_.fetch_before(j, last_);
      bags_.add(j, sum);
    }
  }

 private:
  const Bags& bags_;
  int64_t last_;
};

/// sums[w] = the bag of sample i + w.
template <int kWays, class Columns, bool kWeighted>
HWY_INLINE void pool_beside(const BagColumns<Columns, kWeighted, true>& bags,
                            const int64_t* offsets, int64_t last,
                            typename Columns::Vector (*sums)[Columns::kVectors]) {
  using Vector = typename Columns::Vector;
  const InterleavedFolds<Columns, kWeighted, kWays> folds(bags, last);
  int64_t begin[kWays], shortest = offsets[1] - offsets[0];
  for (int w = 0; w < kWays; ++w) {
    begin[w] = offsets[w];
    shortest = std::min(shortest, offsets[w + 1] - offsets[w]);
  }
  // The runs that all bags have whole, and the next one as far as the shortest bag goes.
  int64_t done = std::min(shortest, kPoolRun);
  folds.fold(begin, done, sums);
  if (done == kPoolRun) {
    for (; shortest - done >= kPoolRun; done += kPoolRun) {
      int64_t at[kWays];
      for (int w = 0; w < kWays; ++w) at[w] = begin[w] + done;
      Vector run[kWays][Columns::kVectors];
      folds.fold(at, kPoolRun, run);
      for (int w = 0; w < kWays; ++w) {
        for (size_t k = 0; k < Columns::kVectors; ++k) sums[w][k] = hn::Add(sums[w][k], run[w][k]);
      }
    }
  }
  // Each bag by itself: the rest of its first run, then its other runs.
  for (int w = 0; w < kWays; ++w) {
    const int64_t end = offsets[w + 1];
    int64_t at = begin[w] + done;
    if (done < kPoolRun) {
      const int64_t stop = std::min(begin[w] + kPoolRun, end);
      folds.go_on(at, stop, sums[w]);
      at = stop;
    }
    for (; at < end; at += kPoolRun) {
      Vector run[Columns::kVectors];
      bags.fold(at, std::min(at + kPoolRun, end), last, run);
      for (size_t k = 0; k < Columns::kVectors; ++k) sums[w][k] = hn::Add(sums[w][k], run[k]);
    }
  }
}

template <class Row, bool kWeighted, int kWays>
void pool_bags_interleaved(const PoolPiece& piece, const BagsParameters& parameters) {
  const PoolTask& task = *piece.task;
  const int64_t* const offsets = task.bags.offsets;
  const int64_t last = offsets[piece.last];
  const bool mean = task.pooling == Pooling::mean;
  by_columns<Row, kWays == 2 ? 4 : 2>(task.rows.dim, [&](auto columns) {
    using Columns = decltype(columns);
    using Vector = typename Columns::Vector;
    const BagColumns<Columns, kWeighted, true> bags(task, columns, parameters);
    IdFetch ids(piece, parameters.ids);
    int64_t i = piece.first;
    for (; i + kWays <= piece.last; i += kWays) {
      ids.reach(std::min(offsets[i + kWays], offsets[i] + kWays * kPoolRun));
      Vector sums[kWays][Columns::kVectors];
      pool_beside<kWays>(bags, offsets + i, last, sums);
      for (int w = 0; w < kWays; ++w) {
        if (mean) bags.divide(offsets[i + w + 1] - offsets[i + w], sums[w]);
        columns.store(sums[w], task.out + (i + w) * task.stride + columns.column());
      }
    }
    for (; i < piece.last; ++i) {
      Vector sum[Columns::kVectors];
      bags.pool(offsets[i], offsets[i + 1], last, mean, ids, sum);
      columns.store(sum, task.out + i * task.stride + columns.column());
    }
  });
}

template <class Row, bool kWeighted, int kWays>
void pool_runs_interleaved(const PoolPiece& piece, const BagsParameters& parameters) {
  const PoolTask& task = *piece.task;
  const int64_t* const offsets = task.bags.offsets;
  const int64_t last = offsets[piece.last];
  by_columns<Row, kWays == 2 ? 4 : 2>(task.rows.dim, [&](auto columns) {
    using Columns = decltype(columns);
    using Vector = typename Columns::Vector;
    const BagColumns<Columns, kWeighted, true> bags(task, columns, parameters);
    const InterleavedFolds<Columns, kWeighted, kWays> folds(bags, last);
    IdFetch ids(piece, parameters.ids);
    for (int64_t i = piece.first; i < piece.last; ++i) {
      const int64_t begin = offsets[i], end = offsets[i + 1];
      int64_t run = begin;
      Vector sum[Columns::kVectors];
      ids.reach(std::min(run + kPoolRun, end));
      bags.fold(run, std::min(run + kPoolRun, end), last, sum);
      run += kPoolRun;
      for (; run + kWays * kPoolRun <= end; run += kWays * kPoolRun) {
        int64_t at[kWays];
        for (int w = 0; w < kWays; ++w) at[w] = run + w * kPoolRun;
        ids.reach(run + kWays * kPoolRun);
        Vector runs[kWays][Columns::kVectors];
        folds.fold(at, kPoolRun, runs);
        for (int w = 0; w < kWays; ++w) {
          for (size_t k = 0; k < Columns::kVectors; ++k) sum[k] = hn::Add(sum[k], runs[w][k]);
        }
      }
      for (; run < end; run += kPoolRun) {
        Vector next[Columns::kVectors];
        ids.reach(std::min(run + kPoolRun, end));
        bags.fold(run, std::min(run + kPoolRun, end), last, next);
        for (size_t k = 0; k < Columns::kVectors; ++k) sum[k] = hn::Add(sum[k], next[k]);
      }
      if (task.pooling == Pooling::mean) bags.divide(end - begin, sum);
      columns.store(sum, task.out + i * task.stride + columns.column());
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
