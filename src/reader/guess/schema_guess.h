// SPDX-License-Identifier: Apache-2.0
// A configuration that `recmill init` guessed, as values and as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/data_options.h"
#include "reader/guess/guess_roles.h"
#include "reader/guess/guess_training.h"

namespace recmill::reader {

struct SchemaGuess {
  DataOptions options;               // path, train, format, columns that have a role
  std::vector<ColumnGuess> columns;  // all of the data, in order, with reasons
  LabelGuess label;
  std::vector<TableGuess> tables;
  TrainingGuess training;
  int64_t sampled_rows = 0;
  int64_t estimated_rows = 0;  // of all files
  bool whole = false;          // the sample is all rows
  std::string toml;            // a configuration that trains, comments that say why
};

/// Decides from a sample; path and train are the caller's. `label` names the label's column, or is
/// empty.
Result<SchemaGuess> decide(const Sample& sample, const std::string& label);

/// The configuration as text. A name that is not UTF-8 text is an error: TOML cannot hold it.
Result<std::string> toml_of(const SchemaGuess& guess);

}  // namespace recmill::reader
