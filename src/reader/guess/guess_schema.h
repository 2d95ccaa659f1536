// SPDX-License-Identifier: Apache-2.0
// What `recmill init DATA` knows: format, columns, sizes and training, guessed from rows of all
// files.
#pragma once

#include <string>

#include "base/files.h"
#include "reader/guess/schema_guess.h"

namespace recmill::reader {

/// Guesses from `path`: a file, a folder (its files; hidden ones and those that begin with '_', as
/// _SUCCESS, are not read) or a pattern. All files must be of one format and header; one that is
/// not, and one of no known format, is refused by name. `label` names the label's column, or is
/// empty.
Result<SchemaGuess> guess_schema(Files& files, const std::string& path,
                                 const std::string& label = "");

}  // namespace recmill::reader
