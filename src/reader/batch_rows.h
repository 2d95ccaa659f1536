// SPDX-License-Identifier: Apache-2.0
// Rows moved between batches.
#pragma once

#include "batch/column_batch.h"
#include "schema/column_spec.h"

namespace recmill::reader {

/// Appends rows [first, first + count) of `from` to `to`, which has the same columns or no rows.
void append_rows(const ColumnBatch& from, int64_t first, int64_t count, ColumnBatch& to);

/// Takes all rows out; columns and capacity stay.
void clear_rows(ColumnBatch& batch);

/// No rows, with the columns of `schema`; capacity stays.
void clear_rows(ColumnBatch& batch, const DataSchema& schema);

}  // namespace recmill::reader
