// SPDX-License-Identifier: Apache-2.0
// Which cell of a text row goes where in a ColumnBatch.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "reader/data_options.h"
#include "reader/label_rule.h"
#include "reader/row/named_values.h"

namespace recmill::reader {

struct JsonColumns;

struct TextColumn {
  bool is_bag() const { return holds_lists || !spec.list_separator.empty(); }
  bool is_weighted() const { return holds_weights || !spec.weight_separator.empty(); }

  ColumnSpec spec;
  int target = 0;  // role dense: index into ColumnBatch::dense; role id: into ColumnBatch::ids
  NamedValues missing = {};                         // spec.missing
  LabelRule label = {};                             // role label
  bool may_be_empty = false;                        // role label: NaN then (DataOptions::scored)
  bool holds_lists = false, holds_weights = false;  // JSON: though no separator says so
};

/// How a row is written.
enum class RowForm { cells, libsvm, json };

/// One row is one line: cells between delimiters; in quotes where `quote` is not 0 (RFC 4180: a
/// quoted cell may hold delimiters, line ends and doubled quotes). A line may end in CR LF.
struct TextLayout {
  std::string delimiter = "\t";  // one character or several
  char quote = 0;
  bool header = false;  // the first row names the columns
  RowForm rows = RowForm::cells;
  bool libffm = false;  // libsvm: items have a field, whose bag they go to
  std::vector<TextColumn> columns;
  DataSchema schema;
  std::shared_ptr<const JsonColumns> json;  // json: a row is an object (json_row.h)

  /// Index of the one column of a role, or of a name; -1: none.
  int column_of(ColumnRole role) const;
  int column_named(std::string_view name) const;
  /// Text that differs wherever rows would be read differently.
  std::string fingerprint() const;
};

/// Makes the columns of `layout` go where those of the same names go in `schema`.
void follow_schema(const DataSchema& schema, TextLayout& layout);

/// Text that differs wherever the cells of a column would be read differently.
std::string fingerprint_of(const ColumnSpec& spec);

/// The layout of Criteo TSV: label, I1.. (dense), C1.. (hexadecimal ids).
Result<TextLayout> criteo_layout(const CriteoOptions& options, const LabelRule& label = {});

/// The layout of libsvm files: a label, and the bag "features" of integer ids with weights, or one
/// for each field.
Result<TextLayout> libsvm_layout(const LibsvmOptions& options, const LabelRule& label = {});

/// Of a column that rows to score lack: true, if its role allows this (a label; a sample's weight,
/// which is 1 then, as a warning says); else false.
bool accept_absent(const ColumnSpec& spec);

/// The layout of a csv data set. `header`: the cells of the first row of a file, or nothing without
/// one. With a header, columns are found by name and those not listed are ignored; without, the
/// list names all columns in order.
Result<TextLayout> csv_layout(const DataOptions& options, const std::vector<std::string>& header);

/// The layout of json_lines: columns by name. `heads`: the first text of each file; what is a list
/// or an object there is a bag, as are columns with separators.
Result<TextLayout> json_layout(const DataOptions& options, const std::vector<std::string>& heads);

}  // namespace recmill::reader
