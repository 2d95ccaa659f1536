// SPDX-License-Identifier: Apache-2.0
// Rows of libsvm and libffm files, which both parsers read by this.
#pragma once

#include <string_view>

#include "reader/row/plain_text_parser.h"

namespace recmill::reader {

/// Fills `values`, which has the bags of the layout, by one row: `label index:value ...`, of libffm
/// `label field:index:value ...`, between spaces or tabs. A value that is not written is 1; what
/// follows a
/// '#' is a comment.
Status parse_libsvm_row(const TextLayout& layout, std::string_view row, RowValues& values);

}  // namespace recmill::reader
