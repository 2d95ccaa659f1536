// SPDX-License-Identifier: Apache-2.0
// Columns that are parts of the time column: the hour and the weekday of each row.
#pragma once

#include <cstdint>
#include <memory>

#include "reader/data_options.h"
#include "reader/reader.h"

namespace recmill::reader {

/// The part of a time (unix seconds, UTC): an hour from 0 to 23, or a weekday from 0, a Monday.
int64_t part_of_time(TimePart part, int64_t time);

/// `options` without the columns that are derived, as readers of files know them. An error names a
/// column that is derived from what is not the time column, or whose role cannot be.
Result<DataOptions> without_derived_columns(const DataOptions& options);

/// A reader with the derived columns of `options` behind those of `files`, which has the others. An
/// error where `files` has no times, or a column of that name.
Result<std::unique_ptr<Reader>> with_derived_columns(const DataOptions& options,
                                                     std::unique_ptr<Reader> files);

}  // namespace recmill::reader
