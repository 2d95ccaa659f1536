// SPDX-License-Identifier: Apache-2.0
// Which fields of a columnar file become what in a ColumnBatch.
#pragma once

#include <arrow/type.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "reader/label_rule.h"
#include "reader/named_values.h"
#include "schema/column_spec.h"

namespace recmill::reader {

/// What the cells of a field are turned into.
enum class CellKind { number, id, weights, group, time };

struct BoundColumn {
  ColumnSpec spec;
  CellKind kind = CellKind::number;
  int field = -1;          // top-level field of the file
  int weights_field = -1;  // of a bag with weights, else -1
  bool list = false;
  int target = 0;  // role dense: index into ColumnBatch::dense; role id: into ColumnBatch::ids
  NamedValues missing = {};   // spec.missing
  LabelRule label = {};       // role label
  bool may_be_empty = false;  // role label: NaN then (DataOptions::scored)
};

struct ColumnarSchema {
  std::vector<BoundColumn> columns;
  DataSchema schema;
};

/// Finds `columns` in a file by name; without any, all fields that carry a role in their metadata
/// (files that Recmill wrote). Dense and id columns come in the order of `columns`, or of the file.
/// `key`, unless it is empty, names a column that is bound even if it has no role, with the role
/// ignore. Unless the file `needs_label`, the label may be missing, or its field (field -1). Errors
/// name the file, the column, the type found and what was expected.
Result<ColumnarSchema> bind_columns(const std::vector<ColumnSpec>& columns, const std::string& key,
                                    bool needs_label, const arrow::Schema& fields,
                                    const std::string& path);

/// A field bound as what its type is likeliest to hold (ids, numbers, times), with the role ignore;
/// nothing: a type that is not read.
std::optional<BoundColumn> bind_by_type(const arrow::Schema& fields, int field);
/// True for integers and booleans, lists of them and dictionaries.
bool is_whole_type(const arrow::DataType& type);

/// The CRC-32C of names, types and roles, as files that Recmill wrote have it in the metadata of
/// their schema; bind_columns() refuses a file where it is another.
std::string schema_crc(const arrow::FieldVector& fields);

}  // namespace recmill::reader
