// SPDX-License-Identifier: Apache-2.0
// A way to pool one feature's bags: what it says of itself, and its body. Recmill's own are listed
// in templates.cc; a user's stand in a file of their own (docs/ADDING.md).
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
  bool staging = false;  // a schedule that stages the table does so now
};

/// A table is staged only for a lookup for each so many of its rows.
constexpr int64_t kStagedRowsOfLookup = 4;

/// Whether a thread gains by staging the table before samples [first, last), in however many
/// pieces: its first piece of them is told so, and no other. A batch much smaller than those that
/// were tuned on does better without.
inline bool worth_staging(const PoolTask& task, int64_t first, int64_t last) {
  const int64_t lookups = task.bags.offsets[last] - task.bags.offsets[first];
  return lookups >= task.rows.count / kStagedRowsOfLookup;
}

/// Whether a batch's lookups ask for as many cache lines as the table has, so that reading all of
/// it in order is the shorter way.
inline bool covers_table(const PoolTask& task) {
  constexpr int64_t kLine = 64;
  const RowStorage& rows = task.rows;
  const int64_t of_lookup = std::max(kLine, rows.dim * bytes_of(rows.precision));
  const int64_t lookups = task.bags.offsets[task.bags.samples] - task.bags.offsets[0];
  return lookups * of_lookup >= rows.count * rows.stride;
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
