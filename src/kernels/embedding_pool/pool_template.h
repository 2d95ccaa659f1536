// SPDX-License-Identifier: Apache-2.0
// A way to pool one feature's bags: what it says of itself, and its body. Recmill's own are listed
// in templates.cc; a user's are in a file of their own (docs/ADDING.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/schedule/schedule.h"

namespace recmill::kernels {

/// The work of one task: samples [first, last) of a feature.
struct PoolPiece {
  const PoolTask* task = nullptr;
  int64_t first = 0;
  int64_t last = 0;
  bool staging = false;  // a schedule that stages the table does so now: a thread's first piece
};

/// Lookups that ask for as many cache lines as the table has: from so many on, reading all of it in
/// order is the shorter way.
inline int64_t covering_lookups(const RowStorage& rows) {
  constexpr int64_t kLine = 64;
  const int64_t of_lookup = std::max(kLine, rows.dim * bytes_of(rows.precision));
  return (rows.count * rows.stride + of_lookup - 1) / of_lookup;
}

/// Whether samples [first, last) have so many. A batch that has not gets the default schedule in
/// place of one that stages the table; a thread whose part of a batch has not, in however many
/// pieces, does not read it first.
inline bool covers_table(const PoolTask& task, int64_t first, int64_t last) {
  return task.bags.offsets[last] - task.bags.offsets[first] >= covering_lookups(task.rows);
}

/// Pools a piece as embedding_pool_reference() means it: writes dim floats for each of its samples
/// and nothing else. `scratch` has TemplateSpec::scratch_bytes, aligned to 64. Runs on any thread,
/// several pieces of one feature at once.
using PoolBody =
    std::function<void(const PoolPiece& piece, ParameterValues values, std::byte* scratch)>;

struct PoolTemplate : TemplateSpec {
  PoolBody body;
  /// Whether the body is right for these bags, which may be other than those it was tuned on; where
  /// it is not, the default schedule does the piece. Null: for all.
  bool (*admits)(const JaggedView& bags) = nullptr;
};

/// Recmill's templates, the default one first.
std::span<const PoolTemplate> pool_templates();

}  // namespace recmill::kernels
