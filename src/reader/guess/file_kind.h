// SPDX-License-Identifier: Apache-2.0
// What a file is, by its first bytes, so that data of no known format is refused by its name.
#pragma once

#include <string>
#include <string_view>

#include "base/files.h"
#include "reader/data_options.h"

namespace recmill::reader {

/// Bytes of a file's start that refuse_unknown() and columnar_kind() look at.
inline constexpr size_t kKindBytes = 4096;

/// The format that starts as `head` does: Parquet, ORC or Arrow IPC by their magic bytes.
/// DataFormat::csv stands for any other.
DataFormat columnar_kind(std::string_view head);

/// Whether a file starts with a line "label index:value index:value ...".
bool is_libsvm(std::string_view head);

/// An error that says what `head`, the (decompressed) start of `path`, is, where that is nothing
/// that is read: another program's file (zip, Excel, NumPy, pickle, HDF5, SQLite, Avro, ...), a
/// compression that its name does not tell, text of UTF-16, JSON, XML, or bytes that are no text.
Status refuse_unknown(const std::string& path, std::string_view head);

}  // namespace recmill::reader
