// SPDX-License-Identifier: Apache-2.0
// Template `rows_copied`: Pooling::none, rows as they are, lookup by lookup. Included once for each
// instruction set (Highway's foreach_target).

#if defined(RECMILL_KERNELS_EMBEDDING_POOL_COPIED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_KERNELS_EMBEDDING_POOL_COPIED_ROWS_INL_H_
#undef RECMILL_KERNELS_EMBEDDING_POOL_COPIED_ROWS_INL_H_
#else
#define RECMILL_KERNELS_EMBEDDING_POOL_COPIED_ROWS_INL_H_
#endif

#include "kernels/embedding_pool/bags-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels {
namespace HWY_NAMESPACE {

template <class Row, bool kWeighted>
void copy_rows(const PoolPiece& piece, int64_t fetch) {
  const PoolTask& task = *piece.task;
  const int64_t* const offsets = task.bags.offsets;
  by_columns<Row, 8>(task.rows.dim, [&](auto columns) {
    using Columns = decltype(columns);
    const BagColumns<Columns, kWeighted, true> bags(task, columns, {fetch, PoolStore::plain});
    for (int64_t j = offsets[piece.first]; j < offsets[piece.last]; ++j) {
      bags.fetch_before(j, offsets[piece.last]);
      typename Columns::Vector row[Columns::kVectors];
      bags.load(j, row);
      columns.store(row, task.out + (j - offsets[0]) * task.stride + columns.column());
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace recmill::kernels
HWY_AFTER_NAMESPACE();

#endif
