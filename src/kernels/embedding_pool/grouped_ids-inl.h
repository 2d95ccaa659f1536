// SPDX-License-Identifier: Apache-2.0
// Template `ids_grouped`: lookups in the order of the rows that they name, so that a row is read
// once for all that look it up at about the same time. Reorders sums. Included once for each
// instruction set (Highway's foreach_target).

#if defined(RECMILL_KERNELS_EMBEDDING_POOL_GROUPED_IDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_EMBEDDING_POOL_GROUPED_IDS_INL_H_
#undef RECMILL_KERNELS_EMBEDDING_POOL_GROUPED_IDS_INL_H_
#else
#define RECMILL_KERNELS_EMBEDDING_POOL_GROUPED_IDS_INL_H_
#endif

#include <bit>

#include "kernels/embedding_pool/bags-inl.h"
#include "kernels/embedding_pool/grouped_lookups.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

template <class Row, bool kWeighted>
void pool_grouped_ids(const PoolPiece& piece, int64_t most, std::byte* scratch) {
  const PoolTask& task = *piece.task;
  const int64_t* const offsets = task.bags.offsets;
  for (int64_t i = piece.first; i < piece.last; ++i)
    std::fill_n(task.out + i * task.stride, task.rows.dim, 0.0f);
  int64_t sample = piece.first;
  for (int64_t begin = offsets[piece.first]; begin < offsets[piece.last]; begin += most) {
    const int64_t end = std::min(begin + most, offsets[piece.last]);
    const GroupedLookups grouped = group_lookups(task, begin, end, most, sample, scratch);
    by_columns<Row, 8>(task.rows.dim, [&](auto columns) {
      using Columns = decltype(columns);
      const BagColumns<Columns, kWeighted, false> bags(task, columns, {0});
      for (uint64_t key : grouped.keys) {
        const auto j = static_cast<int64_t>(key & kPlaceMask);
        float* const out = task.out + grouped.samples[j] * task.stride + columns.column();
        typename Columns::Vector sum[Columns::kVectors];
        columns.load_sums(out, sum);
        bags.add(begin + j, sum);
        columns.store(sum, out);
      }
    });
  }
  if (task.pooling != Pooling::mean) return;
  for (int64_t i = piece.first; i < piece.last; ++i) {
    const auto count = static_cast<float>(offsets[i + 1] - offsets[i]);
    float* const out = task.out + i * task.stride;
    for (int64_t d = 0; d < task.rows.dim && count > 1.0f; ++d) out[d] /= count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
