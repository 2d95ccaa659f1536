// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/empty_pieces.h"

#include <algorithm>

#include "kernels/embedding_pool/stream_zeros.h"

namespace recmill::kernels {
namespace {

/// Zeros from this many on are streamed: more than a core's own cache keeps for whoever reads them,
/// in stretches of whole pages, so that few lines are written in part.
constexpr int64_t kStreamed = 1 << 18, kStretch = 1 << 10;  // floats

/// Whether the outputs of `next` begin where those of `piece` end, for the same samples.
bool goes_on(std::span<const PoolTask> tasks, const Piece& piece, const Piece& next) {
  const PoolTask &task = tasks[piece.feature], &beside = tasks[next.feature];
  return beside.out == task.out + task.rows.dim && beside.stride == task.stride &&
         next.first == piece.first && next.last == piece.last;
}

}  // namespace

size_t zero_empty(std::span<const PoolTask> tasks, std::span<const Piece> pieces) {
  size_t count = 0;
  while (count < pieces.size() && is_empty(tasks[pieces[count].feature], pieces[count]) &&
         (count == 0 || goes_on(tasks, pieces[count - 1], pieces[count])))
    ++count;
  if (count == 0) return 0;
  const PoolTask& first = tasks[pieces[0].feature];
  const PoolTask& last = tasks[pieces[count - 1].feature];
  const int64_t floats = last.out + last.rows.dim - first.out;
  const int64_t samples = pieces[0].last - pieces[0].first;
  const bool streamed = floats >= kStretch && floats * samples >= kStreamed;
  for (int64_t i = pieces[0].first; i < pieces[0].last; ++i) {
    const std::span<float> zeros(first.out + i * first.stride, floats);
    if (streamed)
      stream_zeros(zeros);
    else
      std::ranges::fill(zeros, 0.0f);
  }
  if (streamed) finish_streaming();
  return count;
}

}  // namespace recmill::kernels
