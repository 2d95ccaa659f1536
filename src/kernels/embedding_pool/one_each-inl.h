// SPDX-License-Identifier: Apache-2.0
// Template `one_each`: bags of exactly one lookup, no offsets to read. Included once for each
// instruction set (Highway's foreach_target), and by generated source.

#if defined(RECMILL_KERNELS_EMBEDDING_POOL_ONE_EACH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_EMBEDDING_POOL_ONE_EACH_INL_H_
#undef RECMILL_KERNELS_EMBEDDING_POOL_ONE_EACH_INL_H_
#else
#define RECMILL_KERNELS_EMBEDDING_POOL_ONE_EACH_INL_H_
#endif

#include "kernels/embedding_pool/bags-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

template <class Row, bool kWeighted, bool kFetch, size_t kHeld>
void pool_one_each(const PoolPiece& piece, const BagsParameters& parameters) {
  const PoolTask& task = *piece.task;
  const int64_t begin = task.bags.offsets[0];
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
      ids.reach(begin + i + 1);
      if (fetched && i + kFetchedSamples < end)
        __builtin_prefetch(out + kFetchedSamples * stride, 1);
      typename Columns::Vector sum[Columns::kVectors];
      bags.fold(begin + i, begin + i + 1, begin + end, sum);
      if (whole_lines) {
        columns.stream(sum, out);
      } else {
        columns.store(sum, out);
      }
    }
  });
  if (streamed) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
