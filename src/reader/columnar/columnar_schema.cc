// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/columnar_schema.h"

#include <arrow/extension_type.h>
#include <arrow/type_traits.h>
#include <arrow/util/key_value_metadata.h>

#include <algorithm>

#include "base/hash.h"
#include "reader/columnar/columnar_roles.h"
#include "reader/row/text_layout.h"

namespace recmill::reader {
namespace {

bool is_whole(const arrow::DataType& type) {
  return arrow::is_integer(type.id()) || type.id() == arrow::Type::BOOL ||
         type.id() == arrow::Type::NA;
}

/// Of numbers that have digits behind a point.
bool is_fractional(const arrow::DataType& type) {
  if (!arrow::is_decimal(type.id())) return arrow::is_floating(type.id());
  return static_cast<const arrow::DecimalType&>(type).scale() > 0;
}

bool is_number(const arrow::DataType& type) {
  return is_whole(type) || arrow::is_floating(type.id()) || arrow::is_decimal(type.id());
}

bool is_id(const arrow::DataType& type) {
  return is_number(type) || is_text_type(type);
}

bool is_time(const arrow::DataType& type) {
  return is_number(type) || is_text_type(type) || type.id() == arrow::Type::TIMESTAMP ||
         type.id() == arrow::Type::DATE32 || type.id() == arrow::Type::DATE64;
}

/// The type of the items of a list of any kind or a map, else null.
const arrow::DataType* item_type(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::MAP:
      return static_cast<const arrow::BaseListType&>(type).value_type().get();
    default:
      return nullptr;
  }
}

/// Items that are an id and its weight; names are those of the fields of a struct.
struct IdAndWeight {
  std::string id, weight;
};

/// What the items of a bag are where they are structs: of a map its keys and values, of a list
/// structs of `id` and `weight`.
std::optional<IdAndWeight> id_and_weight(const arrow::DataType& type) {
  const arrow::DataType* const items = item_type(type);
  if (items == nullptr || items->id() != arrow::Type::STRUCT || items->num_fields() != 2) return {};
  const auto& pair = static_cast<const arrow::StructType&>(*items);
  IdAndWeight found{"id", "weight"};
  if (type.id() == arrow::Type::MAP) found = {pair.field(0)->name(), pair.field(1)->name()};
  const auto id = pair.GetFieldByName(found.id), weight = pair.GetFieldByName(found.weight);
  if (id == nullptr || weight == nullptr) return {};
  if (!is_id(stored_type(*id->type())) || !is_number(stored_type(*weight->type()))) return {};
  return found;
}

bool is_bag(const arrow::DataType& type) {
  const arrow::DataType* const items = item_type(type);
  return items != nullptr && (is_id(stored_type(*items)) || id_and_weight(type).has_value());
}

/// What a field must be for a kind of cell; empty: it is.
std::string expected_instead(CellKind kind, const arrow::DataType& type) {
  const arrow::DataType* const items = item_type(type);
  const arrow::DataType& stored = stored_type(type);
  switch (kind) {
    case CellKind::number:
      return is_number(stored) ? "" : "a float, a decimal or an integer";
    case CellKind::id:
      return is_id(stored) || is_bag(type)
                 ? ""
                 : "a whole number, a string, binary, a list of one of these, a map of ids to "
                   "weights or a list of structs of 'id' and 'weight'";
    case CellKind::weights:
      return items != nullptr && is_number(stored_type(*items)) ? "" : "a list of numbers";
    case CellKind::group:
      return is_id(stored) ? "" : "a whole number, a string or binary";
    case CellKind::time:
      return is_time(stored) ? "" : "a number, a timestamp, a date or text of one";
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

/// A field of a file, perhaps inside structs.
struct Found {
  FieldPlace place;
  const arrow::DataType* type = nullptr;
};

/// Appends to `found` the fields of `fields` that `name` names: those of that very name; without
/// one, field "b" of a struct field "a" where it is "a.b".
void find_fields(const arrow::FieldVector& fields, std::string_view name, const FieldPlace& outer,
                 std::vector<Found>& found) {
  const auto place_of = [&](size_t i) {
    FieldPlace place = outer;
    if (place.field < 0) {
      place.field = static_cast<int>(i);
    } else {
      place.inside.push_back(fields[i]->name());
    }
    return place;
  };
  const size_t before = found.size();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i]->name() == name) found.push_back({place_of(i), fields[i]->type().get()});
  }
  if (found.size() > before) return;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& own = fields[i]->name();
    if (fields[i]->type()->id() != arrow::Type::STRUCT || !name.starts_with(own)) continue;
    if (name.size() <= own.size() || name[own.size()] != '.') continue;
    find_fields(fields[i]->type()->fields(), name.substr(own.size() + 1), place_of(i), found);
  }
}

std::vector<Found> find_fields(const arrow::Schema& schema, std::string_view name) {
  std::vector<Found> found;
  find_fields(schema.fields(), name, {}, found);
  return found;
}

/// A field bound for a kind of cell, which it is right for.
BoundColumn bind(const std::string& name, CellKind kind, const Found& found) {
  BoundColumn column;
  column.spec.name = name;
  column.kind = kind;
  column.values = found.place;
  column.list = item_type(*found.type) != nullptr;
  if (const auto pair = id_and_weight(*found.type)) {
    column.weights = found.place;
    column.values.item = pair->id;
    column.weights.item = pair->weight;
  }
  return column;
}

std::optional<BoundColumn> bind_by_type(const std::string& name, const Found& found) {
  // Fractions may be ids that lacked values (pandas), but more often are not.
  const bool number = is_fractional(stored_type(*found.type));
  for (const CellKind kind : {CellKind::id, CellKind::number, CellKind::time}) {
    if (number && kind == CellKind::id) continue;
    if (expected_instead(kind, *found.type).empty()) return bind(name, kind, found);
  }
  return {};
}

/// Appends a field, or those within a struct, with its place.
void add_named(const std::string& name, const FieldPlace& place,
               const std::shared_ptr<arrow::Field>& field, std::vector<NamedField>& named) {
  if (field->type()->id() != arrow::Type::STRUCT || field->type()->num_fields() == 0) {
    named.push_back({name, place, field, {}});
    return;
  }
  for (const auto& inner : field->type()->fields()) {
    FieldPlace within = place;
    within.inside.push_back(inner->name());
    add_named(name + "." + inner->name(), within, inner, named);
  }
}

/// Adds columns one by one, and keeps DataSchema in step.
class Binder {
 public:
  Binder(const arrow::Schema& fields, const std::string& path, bool needs_label)
      : fields_(fields), path_(path), needs_label_(needs_label) {}

  Status add(const ColumnSpec& spec) {
    if (spec.role == ColumnRole::ignore) return {};
    const CellKind kind = kind_of(spec.role);
    const bool may_be_empty = spec.role == ColumnRole::label && !needs_label_;
    if (!needs_label_ && find_fields(fields_, spec.name).empty()) {
      if (may_be_empty) return add_absent(spec, kind);
      if (accept_absent(spec)) return {};
    }
    RECMILL_ASSIGN_OR_RETURN(const Found found, find(spec.name, kind, spec.role));
    BoundColumn column = bind(spec.name, kind, found);
    column.spec = spec;
    column.missing = NamedValues(spec.missing);
    column.may_be_empty = may_be_empty;
    RECMILL_RETURN_IF_ERROR(enter(column));
    bound_.columns.push_back(std::move(column));
    return {};
  }

  /// Binds a column for what it holds, unless it is bound for its role.
  Status add_key(const std::string& name) {
    const bool bound =
        std::ranges::any_of(bound_.columns, [&](const auto& c) { return c.spec.name == name; });
    if (name.empty() || bound) return {};
    const std::vector<Found> found = find_fields(fields_, name);
    if (found.size() != 1) {
      return Status::BadRequest("data.split.column: the data has no column '" + name + "'");
    }
    std::optional<BoundColumn> column = bind_by_type(name, found[0]);
    if (!column.has_value()) {
      return Status::BadRequest("data.split.column: '" + name + "' is " +
                                found[0].type->ToString() + ", which is not read");
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

  /// A column that the file has no field for.
  Status add_absent(const ColumnSpec& spec, CellKind kind) {
    BoundColumn column;
    column.spec = spec;
    column.kind = kind;
    column.may_be_empty = true;
    RECMILL_RETURN_IF_ERROR(enter(column));
    bound_.columns.push_back(std::move(column));
    return {};
  }

  Result<Found> find(const std::string& name, CellKind kind, ColumnRole role) const {
    const std::vector<Found> found = find_fields(fields_, name);
    if (found.size() != 1) {
      return Status::BadRequest(
          at(name) + (found.empty() ? " is missing; the file has " + names() : " is there twice"));
    }
    const std::string expected = expected_instead(kind, *found[0].type);
    const bool word = role == ColumnRole::label && is_text_type(stored_type(*found[0].type));
    if (expected.empty() || word) return found[0];
    return Status::BadRequest(at(name) + " is " + found[0].type->ToString() + "; role " +
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
    if (column.weights.field < 0 && !find_fields(fields_, weights).empty()) {
      RECMILL_ASSIGN_OR_RETURN(const Found found, find(weights, CellKind::weights, ColumnRole::id));
      column.weights = found.place;
    }
    if (column.weights.field >= 0) bound_.schema.weighted.push_back(column.spec.name);
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

std::vector<NamedField> fields_by_type(const arrow::Schema& fields) {
  std::vector<NamedField> named;
  for (int i = 0; i < fields.num_fields(); ++i)
    add_named(fields.field(i)->name(), {.field = i, .inside = {}, .item = {}}, fields.field(i),
              named);
  std::erase_if(named, [&](NamedField& each) {
    const std::vector<Found> found = find_fields(fields, each.name);
    if (found.size() == 1) each.bound = bind_by_type(each.name, found[0]);
    return found.size() == 1 && found[0].place != each.place;  // the name is another field's
  });
  return named;
}

bool is_whole_type(const arrow::DataType& type) {
  const arrow::DataType* const items = item_type(type);
  const arrow::DataType& stored = stored_type(items == nullptr ? type : *items);
  return is_whole(stored) || (arrow::is_decimal(stored.id()) && !is_fractional(stored));
}

bool is_text_type(const arrow::DataType& type) {
  return arrow::is_base_binary_like(type.id()) || arrow::is_binary_view_like(type.id()) ||
         type.id() == arrow::Type::FIXED_SIZE_BINARY;
}

const arrow::DataType& stored_type(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::DICTIONARY:
      return stored_type(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::RUN_END_ENCODED:
      return stored_type(*static_cast<const arrow::RunEndEncodedType&>(type).value_type());
    case arrow::Type::EXTENSION:
      return stored_type(*static_cast<const arrow::ExtensionType&>(type).storage_type());
    default:
      return type;
  }
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
