// SPDX-License-Identifier: Apache-2.0
// Which fields of a columnar file become what in a ColumnBatch.
#pragma once

#include <arrow/type.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "reader/label_rule.h"
#include "reader/row/named_values.h"
#include "schema/column_spec.h"

namespace recmill::reader {

/// What the cells of a field are turned into.
enum class CellKind { number, id, weights, group, time };

/// Where in a file some values are.
struct FieldPlace {
  int field = -1;                   // top-level field; -1: nowhere
  std::vector<std::string> inside;  // fields of structs on the way, from the outermost one in
  std::string item;  // of the structs that a list or a map holds, the field; empty: no structs
  bool operator==(const FieldPlace&) const = default;
};

struct BoundColumn {
  ColumnSpec spec;
  CellKind kind = CellKind::number;
  FieldPlace values;
  FieldPlace weights;  // of a bag with weights, else nowhere
  bool list = false;   // or a map
  int target = 0;      // role dense: index into ColumnBatch::dense; role id: into ColumnBatch::ids
  NamedValues missing = {};   // spec.missing
  LabelRule label = {};       // role label
  bool may_be_empty = false;  // role label: NaN then (DataOptions::scored)

  const FieldPlace& place_of(CellKind what) const {
    return what == CellKind::weights ? weights : values;
  }
};

struct ColumnarSchema {
  std::vector<BoundColumn> columns;
  DataSchema schema;
};

/// Finds `columns` in a file by name; without any, all fields that carry a role in their metadata
/// (files that Recmill wrote). "a.b" is field b of struct a, unless a field has that very name.
/// Dense and id columns come in the order of `columns`, or of the file. `key`, unless it is empty,
/// names a column that is bound even if it has no role, with the role ignore. Unless the file
/// `needs_label`, the label may be missing, or its field (which is nowhere then). Errors name the
/// file, the column, the type found and what was expected.
Result<ColumnarSchema> bind_columns(const std::vector<ColumnSpec>& columns, const std::string& key,
                                    bool needs_label, const arrow::Schema& fields,
                                    const std::string& path);

/// A field under the name that bind_columns() finds it by.
struct NamedField {
  std::string name;
  FieldPlace place;
  std::shared_ptr<arrow::Field> field;
  /// Bound as what its type is likeliest to hold (ids, numbers, times), with the role ignore;
  /// nothing: a type that is not read.
  std::optional<BoundColumn> bound;
};
/// All fields of a file, in order; in place of a struct those within, as "a.b".
std::vector<NamedField> fields_by_type(const arrow::Schema& fields);
/// True for integers, booleans and decimals without a fraction, lists of them and dictionaries.
bool is_whole_type(const arrow::DataType& type);

/// True for strings and binary of any kind.
bool is_text_type(const arrow::DataType& type);
/// What values are stored as: dictionaries, runs and extension types taken off.
const arrow::DataType& stored_type(const arrow::DataType& type);

/// The CRC-32C of names, types and roles, as files that Recmill wrote have it in the metadata of
/// their schema; bind_columns() refuses a file where it is another.
std::string schema_crc(const arrow::FieldVector& fields);

}  // namespace recmill::reader
