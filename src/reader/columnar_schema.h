// SPDX-License-Identifier: Apache-2.0
// Which fields of a columnar file become what in a ColumnBatch.
#pragma once

#include <arrow/type.h>

#include <string>
#include <vector>

#include "base/status.h"
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
};

struct ColumnarSchema {
  std::vector<BoundColumn> columns;
  DataSchema schema;
};

/// Finds `columns` in a file by name; without any, all fields that carry a role in their metadata
/// (files that Recmill wrote). Dense and id columns come in the order of `columns`, or of the file.
/// `key`, unless it is empty, names a column that is bound even if it has no role, with the role
/// ignore. Errors name the file, the column, the type found and what was expected.
Result<ColumnarSchema> bind_columns(const std::vector<ColumnSpec>& columns, const std::string& key,
                                    const arrow::Schema& fields, const std::string& path);

/// The roles that a field of this type can have, the likeliest first; none: it cannot be read.
std::vector<ColumnRole> roles_of(const arrow::DataType& type);

/// The CRC-32C of names, types and roles, as files that Recmill wrote have it in the metadata of
/// their schema; bind_columns() refuses a file where it is another.
std::string schema_crc(const arrow::FieldVector& fields);

}  // namespace recmill::reader
