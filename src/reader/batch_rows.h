// SPDX-License-Identifier: Apache-2.0
// Rows moved between batches.
#pragma once

#include "batch/column_batch.h"
#include "schema/column_spec.h"

namespace recmill::reader {

/// Appends rows [first, first + count) of `from` to `to`, which has the same columns or no rows.
void append_rows(const ColumnBatch& from, int64_t first, int64_t count, ColumnBatch& to);

/// Sizes `batch` for `count` rows of `schema`, ids excepted. Memory is reused, and what has the
/// size already is not zeroed again.
void make_room(const DataSchema& schema, int64_t count, ColumnBatch& batch);

/// Copies rows [first, first + count) of `from` to row `at` of `to`, which make_room() sized and
/// whose rows before `at` are there.
void copy_rows(const ColumnBatch& from, int64_t first, int64_t count, ColumnBatch& to, int64_t at);

}  // namespace recmill::reader
