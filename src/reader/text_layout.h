// SPDX-License-Identifier: Apache-2.0
// Which cell of a text row goes where in a ColumnBatch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "reader/data_options.h"
#include "reader/label_rule.h"
#include "reader/named_values.h"

namespace recmill::reader {

struct TextColumn {
  ColumnSpec spec;
  int target = 0;  // role dense: index into ColumnBatch::dense; role id: into ColumnBatch::ids
  NamedValues missing = {};  // spec.missing
  LabelRule label = {};      // role label
};

/// One row is one line: cells between delimiters; in quotes where `quote` is not 0 (RFC 4180: a
/// quoted cell may hold delimiters, line ends and doubled quotes). A line may end in CR LF.
struct TextLayout {
  char delimiter = '\t';
  char quote = 0;
  bool header = false;  // the first row names the columns
  std::vector<TextColumn> columns;
  DataSchema schema;

  /// Index of the one column of a role, or of a name; -1: none.
  int column_of(ColumnRole role) const;
  int column_named(std::string_view name) const;
  /// Text that differs wherever rows would be read differently.
  std::string fingerprint() const;
};

/// Text that differs wherever the cells of a column would be read differently.
std::string fingerprint_of(const ColumnSpec& spec);

/// The layout of Criteo TSV: label, I1.. (dense), C1.. (hexadecimal ids).
Result<TextLayout> criteo_layout(const CriteoOptions& options);

/// The layout of a csv data set. `header`: the cells of the first row of a file, or nothing without
/// one. With a header, columns are found by name and those not listed are ignored; without, the
/// list names all columns in order.
Result<TextLayout> csv_layout(const DataOptions& options, const std::vector<std::string>& header);

}  // namespace recmill::reader
