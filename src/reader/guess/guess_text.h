// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "reader/guess/sampled_column.h"

namespace recmill::reader {

/// Rows from the heads of text files, and from places within large ones, 8 MiB in all. The first
/// file says what the rows are, and the others must agree, or are refused by name:
///   criteo_tsv    TAB, 40 columns: 0/1, 13 integers, 26 hexadecimal ids
///   behavior_log  5 columns: three integers, a word, a unix time
///   csv           the rest: the delimiter that all lines have equally often; a header where no
///                 cell of the first line is a number (its first one may be empty)
Result<Sample> sample_text(Files& files, const std::vector<std::string>& paths);

}  // namespace recmill::reader
