// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar_schema.h"

#include <arrow/type_traits.h>
#include <arrow/util/key_value_metadata.h>

#include <algorithm>

#include "base/hash.h"
#include "reader/columnar_roles.h"

namespace recmill::reader {
namespace {

bool is_text(const arrow::DataType& type) {
  return arrow::is_base_binary_like(type.id()) || type.id() == arrow::Type::FIXED_SIZE_BINARY;
}

bool is_whole(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || type.id() == arrow::Type::BOOL ||
         type.id() == arrow::Type::NA;
}

const arrow::DataType& without_dictionary(const arrow::DataType& type) {
  if (type.id() != arrow::Type::DICTIONARY) return type;
  return *static_cast<const arrow::DictionaryType&>(type).value_type();
}

bool is_number(const arrow::DataType& type) {
  return is_whole(type) || arrow::is_floating(type.id());
}

bool is_single_id(const arrow::DataType& type) {
  const arrow::DataType& values = without_dictionary(type);
  return is_whole(values) || is_text(values);
}

bool is_time(const arrow::DataType& type) {
  return is_whole(type) || type.id() == arrow::Type::TIMESTAMP ||
         type.id() == arrow::Type::DATE32 || type.id() == arrow::Type::DATE64;
}

/// The type of the items of a list of any kind, else null.
const arrow::DataType* item_type(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
      return static_cast<const arrow::BaseListType&>(type).value_type().get();
    default:
      return nullptr;
  }
}

/// What a field must be for a kind of cell; empty: it is.
std::string expected_instead(CellKind kind, const arrow::DataType& type) {
  const arrow::DataType* items = item_type(type);
  switch (kind) {
    case CellKind::number:
      return is_number(type) ? "" : "a float or an integer";
    case CellKind::id:
      return is_single_id(items == nullptr ? type : *items)
                 ? ""
                 : "an integer, a string, binary, a dictionary of these, or a list of one of them";
    case CellKind::weights:
      return items != nullptr && is_number(*items) ? "" : "a list of floats";
    case CellKind::group:
      return is_single_id(type) ? "" : "an integer, a string, binary or a dictionary of these";
    case CellKind::time:
      return is_time(type) ? "" : "an integer, a timestamp or a date";
  }
  return "";
}

CellKind kind_of(ColumnRole role) {
  switch (role) {
    case ColumnRole::id:
      return CellKind::id;
    case ColumnRole::group:
      return CellKind::group;
    case ColumnRole::time:
      return CellKind::time;
    default:
      return CellKind::number;
  }
}

/// Adds columns one by one, and keeps DataSchema in step.
class Binder {
 public:
  Binder(const arrow::Schema& fields, const std::string& path, bool needs_label)
      : fields_(fields), path_(path), needs_label_(needs_label) {}

  Status add(const ColumnSpec& spec) {
    if (spec.role == ColumnRole::ignore) return {};
    BoundColumn column;
    column.spec = spec;
    column.missing = NamedValues(spec.missing);
    column.kind = kind_of(spec.role);
    column.may_be_empty = spec.role == ColumnRole::label && !needs_label_;
    if (column.may_be_empty && fields_.GetFieldIndex(spec.name) < 0) {
      RECMILL_RETURN_IF_ERROR(enter(column));
      bound_.columns.push_back(std::move(column));
      return {};
    }
    RECMILL_ASSIGN_OR_RETURN(column.field, find(spec.name, column.kind, spec.role));
    const arrow::DataType& type = *fields_.field(column.field)->type();
    column.list = item_type(type) != nullptr;
    RECMILL_RETURN_IF_ERROR(enter(column));
    bound_.columns.push_back(std::move(column));
    return {};
  }

  /// Binds a column for what it holds, unless it is bound for its role.
  Status add_key(const std::string& name) {
    const bool bound =
        std::ranges::any_of(bound_.columns, [&](const auto& c) { return c.spec.name == name; });
    if (name.empty() || bound) return {};
    const std::vector<int> found = fields_.GetAllFieldIndices(name);
    if (found.size() != 1) {
      return Status::BadRequest("data.split.column: the data has no column '" + name + "'");
    }
    std::optional<BoundColumn> column = bind_by_type(fields_, found[0]);
    if (!column.has_value()) {
      return Status::BadRequest("data.split.column: '" + name + "' is " +
                                fields_.field(found[0])->type()->ToString() +
                                ", which is not read");
    }
    bound_.columns.push_back(*std::move(column));
    return {};
  }

  Result<ColumnarSchema> finish() {
    for (const BoundColumn& column : bound_.columns) {
      if (column.spec.role == ColumnRole::label) return std::move(bound_);
    }
    if (!needs_label_) {  // it would be the first of a file that Recmill wrote
      BoundColumn label;
      label.spec.name = "label";
      label.spec.role = ColumnRole::label;
      label.may_be_empty = true;
      bound_.columns.insert(bound_.columns.begin(), std::move(label));
      return std::move(bound_);
    }
    return Status::BadRequest(path_ + ": no column has the role label");
  }

 private:
  std::string at(const std::string& name) const { return path_ + ": column '" + name + "'"; }

  Result<int> find(const std::string& name, CellKind kind, ColumnRole role) const {
    const std::vector<int> found = fields_.GetAllFieldIndices(name);
    if (found.size() != 1) {
      return Status::BadRequest(
          at(name) + (found.empty() ? " is missing; the file has " + names() : " is there twice"));
    }
    const arrow::DataType& type = *fields_.field(found[0])->type();
    const std::string expected = expected_instead(kind, type);
    if (expected.empty()) return found[0];
    return Status::BadRequest(at(name) + " is " + type.ToString() + "; role " +
                              std::string(name_of(role)) + " needs " + expected);
  }

  Status enter(BoundColumn& column) {
    const std::string& name = column.spec.name;
    switch (column.spec.role) {
      case ColumnRole::dense:
        column.target = static_cast<int>(bound_.schema.dense.size());
        bound_.schema.dense.push_back(name);
        return {};
      case ColumnRole::id:
        column.target = static_cast<int>(bound_.schema.ids.size());
        bound_.schema.ids.push_back(name);
        return column.list ? enter_bag(column) : Status();
      case ColumnRole::sample_weight:
        return once(bound_.schema.has_sample_weight, column);
      case ColumnRole::time:
        return once(bound_.schema.has_time, column);
      case ColumnRole::group:
        return once(bound_.schema.has_group, column);
      default:
        return once(has_label_, column);
    }
  }

  Status enter_bag(BoundColumn& column) {
    bound_.schema.bags.push_back(column.spec.name);
    const std::string weights = column.spec.name + kWeightsSuffix;
    if (fields_.GetFieldIndex(weights) < 0) return {};
    RECMILL_ASSIGN_OR_RETURN(column.weights_field,
                             find(weights, CellKind::weights, ColumnRole::id));
    bound_.schema.weighted.push_back(column.spec.name);
    return {};
  }

  Status once(bool& seen, const BoundColumn& column) const {
    if (seen) {
      return Status::BadRequest(at(column.spec.name) + " is the second with role " +
                                std::string(name_of(column.spec.role)));
    }
    seen = true;
    return {};
  }

  std::string names() const {
    std::string text;
    constexpr int kMany = 8;
    for (int i = 0; i < fields_.num_fields() && i < kMany; ++i) {
      text += (i == 0 ? "'" : ", '") + fields_.field(i)->name() + "'";
    }
    return text.empty() ? "none" : text + (fields_.num_fields() > kMany ? ", ..." : "");
  }

  const arrow::Schema& fields_;
  const std::string& path_;
  ColumnarSchema bound_;
  const bool needs_label_;
  bool has_label_ = false;
};

/// The columns that the file itself declares.
Result<std::vector<ColumnSpec>> declared_columns(const arrow::Schema& fields,
                                                 const std::string& path) {
  std::vector<ColumnSpec> columns;
  for (const auto& field : fields.fields()) {
    if (field->metadata() == nullptr || !field->metadata()->Contains(kRoleKey)) continue;
    const std::string role = *field->metadata()->Get(kRoleKey);
    if (role == kWeightsRole) continue;
    ColumnSpec column;
    column.name = field->name();
    const auto& names = EnumNames<ColumnRole>::names;
    const auto named = std::ranges::find(names, role, [](const auto& name) { return name.second; });
    if (named == names.end()) {
      return Status::Failed(path + ": column '" + field->name() + "' has the unknown role '" +
                            role + "' in its metadata");
    }
    column.role = named->first;
    columns.push_back(std::move(column));
  }
  if (columns.empty()) {
    return Status::BadRequest(path + ": its columns carry no '" + kRoleKey +
                              "', so data.columns must name them");
  }
  return columns;
}

}  // namespace

std::string schema_crc(const arrow::FieldVector& fields) {
  std::string text;
  for (const auto& field : fields) {
    // Parquet names the items of a list anew.
    const arrow::DataType* items = item_type(*field->type());
    text += field->name() +
            (items == nullptr ? " " + field->type()->ToString() : " list of " + items->ToString());
    const auto& metadata = field->metadata();
    if (metadata != nullptr && metadata->Contains(kRoleKey)) text += ' ' + *metadata->Get(kRoleKey);
    text += '\n';
  }
  return std::to_string(crc32c(std::as_bytes(std::span(text))));
}

std::optional<BoundColumn> bind_by_type(const arrow::Schema& fields, int field) {
  const arrow::DataType& type = *fields.field(field)->type();
  for (const CellKind kind : {CellKind::id, CellKind::number, CellKind::time}) {
    if (!expected_instead(kind, type).empty()) continue;
    BoundColumn column;
    column.spec.name = fields.field(field)->name();
    column.kind = kind;
    column.field = field;
    column.list = item_type(type) != nullptr;
    return column;
  }
  return {};
}

bool is_whole_type(const arrow::DataType& type) {
  const arrow::DataType* const items = item_type(type);
  return is_whole(without_dictionary(items == nullptr ? type : *items));
}

Result<ColumnarSchema> bind_columns(const std::vector<ColumnSpec>& columns, const std::string& key,
                                    bool needs_label, const arrow::Schema& fields,
                                    const std::string& path) {
  const auto& metadata = fields.metadata();
  if (metadata != nullptr && metadata->Contains(kSchemaCrcKey) &&
      *metadata->Get(kSchemaCrcKey) != schema_crc(fields.fields())) {
    return Status::Failed(path + ": its schema is damaged (checksum)");
  }
  std::vector<ColumnSpec> wanted = columns;
  if (wanted.empty()) {
    RECMILL_ASSIGN_OR_RETURN(wanted, declared_columns(fields, path));
  }
  Binder binder(fields, path, needs_label);
  for (const ColumnSpec& column : wanted) RECMILL_RETURN_IF_ERROR(binder.add(column));
  RECMILL_RETURN_IF_ERROR(binder.add_key(key));
  return binder.finish();
}

}  // namespace recmill::reader
