// SPDX-License-Identifier: Apache-2.0
// What `recmill init DATA` knows: format, columns and table sizes, guessed from the head of a text
// file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "reader/data_options.h"

namespace recmill::reader {

/// A table for an id column.
struct TableGuess {
  std::string column;
  int64_t distinct = 0;  // in the sample
  int64_t rows = 0;      // that the whole data set may need, hashed: at most 1,000,000
};

struct SchemaGuess {
  DataOptions options;  // path, train, format, columns
  int64_t sampled_rows = 0;
  int64_t estimated_rows = 0;  // of the file, by its bytes
  std::vector<TableGuess> tables;
  std::string toml;  // a configuration to start from, comments that say what was guessed
};

/// Guesses from the first 4 MiB of `path`, a file, a folder (its first file) or a pattern. Text
/// alone: .parquet and .arrow files name their columns themselves, and are refused here.
///   criteo_tsv    TAB, 40 columns: 0/1, 13 integers, 26 hexadecimal ids
///   behavior_log  5 columns: three integers, a word, a unix time
///   csv           the rest: the delimiter that all lines have equally often; a header where no
///   cell
///                 of the first line is a number; label by name or as the first column of 0 and 1;
///                 time by name; numbers with a point are dense, other columns are ids; a column
///                 called "id" without a repetition is ignored
Result<SchemaGuess> guess_schema(Files& files, const std::string& path);

}  // namespace recmill::reader
