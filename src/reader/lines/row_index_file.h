// SPDX-License-Identifier: Apache-2.0
// A row index as the bytes of its file in the cache folder (docs/formats/row_index.md).
#pragma once

#include <optional>
#include <string>

#include "reader/lines/row_index.h"

namespace recmill::reader {

/// `key` says of what file and under which rule the index is.
std::string encode_row_index(const RowIndex& index, const std::string& key);

/// The index; nothing for bytes that are damaged, belong to another key, or whose counts do not
/// belong together.
std::optional<RowIndex> decode_row_index(const std::string& bytes, const std::string& key);

}  // namespace recmill::reader
