// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "reader/lines/row_source.h"
#include "reader/text/text_parser.h"

namespace recmill::reader {

/// Parses all rows of `source` in the order of the data, `rows_at_once` at a time, and hands them
/// to `take` with their text. Errors name file and line.
Status parse_all(RowSource& source, TextParser& parser, int64_t rows_at_once, ThreadPool& pool,
                 const std::function<Status(const ColumnBatch&, const TextWindow&)>& take);

}  // namespace recmill::reader
