// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/files.h"
#include "reader/schema_guess.h"

namespace recmill::reader {

/// Guesses from the first 65,536 rows of a Parquet or Arrow IPC file. A file whose columns carry
/// their roles needs no data.columns; of any other, types decide and then guess_roles(): floats are
/// dense, integers, text and lists of these ids, timestamps the time.
Result<SchemaGuess> guess_columnar(Files& files, DataFormat format, const std::string& file);

}  // namespace recmill::reader
