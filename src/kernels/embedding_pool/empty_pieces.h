// SPDX-License-Identifier: Apache-2.0
// Features without a lookup in a batch: of thousands, most often many, beside each other.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/schedule/task_map.h"

namespace recmill::kernels {

/// Whether all that is to do for the piece is to write zeros.
inline bool is_empty(const PoolTask& task, const Piece& piece) {
  return task.pooling != Pooling::none &&
         task.bags.offsets[piece.first] == task.bags.offsets[piece.last];
}

/// Zeroes the outputs of the first pieces, as many as are empty, of the same samples and have their
/// outputs beside each other: a sample after the other, in place of a feature after the other.
/// Returns how many; 0: the first one is not empty.
size_t zero_empty(std::span<const PoolTask> tasks, std::span<const Piece> pieces);

}  // namespace recmill::kernels
