// SPDX-License-Identifier: Apache-2.0
// What `recmill init DATA` knows: format, columns and table sizes, guessed from the head of a file.
#pragma once

#include <string>

#include "base/files.h"
#include "reader/schema_guess.h"

namespace recmill::reader {

/// Guesses from `path`, a file, a folder (its first file) or a pattern: by guess_columnar() for
/// .parquet, .arrow, .ipc and .feather, by guess_text() for any other name.
Result<SchemaGuess> guess_schema(Files& files, const std::string& path);

}  // namespace recmill::reader
