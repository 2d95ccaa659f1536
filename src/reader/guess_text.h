// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/files.h"
#include "reader/schema_guess.h"

namespace recmill::reader {

/// Guesses from the first 4 MiB of a text file.
///   criteo_tsv    TAB, 40 columns: 0/1, 13 integers, 26 hexadecimal ids
///   behavior_log  5 columns: three integers, a word, a unix time
///   csv           the rest: the delimiter that all lines have equally often; a header where no
///   cell
///                 of the first line is a number; roles by guess_roles()
Result<SchemaGuess> guess_text(Files& files, const std::string& file);

}  // namespace recmill::reader
