// SPDX-License-Identifier: Apache-2.0
// From what the cells of columns have in common to a configuration: decided here for every format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/data_options.h"

namespace recmill::reader {

/// What the cells of a column have in common. Cells are those that are not empty.
struct ColumnFacts {
  std::string name;
  int64_t cells = 0, distinct = 0, distinct_in_half = 0;  // distinct: ids, in the first half too
  bool integers = true, numbers = true, hexadecimal = true, zero_or_one = true;
  bool time = false;     // of a type that is a time
  bool ignored = false;  // of a type that no role can read
};

/// A table for an id column.
struct TableGuess {
  std::string column;
  int64_t distinct = 0;  // in the sample
  int64_t rows = 0;      // that the whole data set may need, hashed: at most 1,000,000
};

struct SchemaGuess {
  DataOptions options;  // path, train, format, columns
  int64_t sampled_rows = 0;
  int64_t estimated_rows = 0;  // of the file
  bool has_dense = false;
  std::vector<TableGuess> tables;
  std::string toml;  // a configuration that trains, comments that say what was guessed
};

/// A guess about `file`, its place filled in.
SchemaGuess guess_of(const std::string& file, DataFormat format);

/// Label by name or as the first column of 0 and 1; time by type or name; numbers with a point are
/// dense, other columns are ids; a column called "id" without a repetition in `rows` rows is
/// ignored.
std::vector<ColumnSpec> guess_roles(const std::vector<ColumnFacts>& facts, int64_t rows);

/// Adds a table for the ids of `facts`; sampled_rows and estimated_rows are known.
void add_table(std::string name, const ColumnFacts& facts, SchemaGuess& guess);

/// Fills toml from the rest. A name that is no UTF-8 text is an error: TOML cannot hold it.
Status write_toml(SchemaGuess& guess);

}  // namespace recmill::reader
