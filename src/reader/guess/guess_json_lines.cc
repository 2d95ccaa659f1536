// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/guess_json_lines.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/json/json.h"

namespace recmill::reader {
namespace {

using Object = nlohmann::ordered_json;

constexpr int kDeepest = 8;  // objects within each other whose keys are columns

/// What the rows have under a key.
struct Place {
  std::vector<std::string> keys;  // of the objects there, in the order of their first rows
  std::map<std::string, Place> within;
  double objects = 0, pairs = 0;   // objects, and keys in all of them
  bool numbers_alone = true;       // under these keys
  bool others = false;             // values that are no objects, and not null
  bool list = false, odd = false;  // an array; one of what is no id

  /// {"id": weight, ...}: two objects of them have few keys in common.
  bool is_bag() const {
    return objects > 0 && !others && numbers_alone &&
           static_cast<double>(keys.size()) > 2 * pairs / objects;
  }
  bool has_columns_within() const { return objects > 0 && !others && !is_bag(); }
};

bool is_item(const Object& item) {
  return item.is_object() ? item.contains("id") && item["id"].is_primitive() : item.is_primitive();
}

void look_at(const Object& value, int depth, Place& place) {
  if (!value.is_object()) {
    place.others = place.others || !value.is_null();
    if (!value.is_array()) return;
    place.list = true;
    for (const Object& item : value) place.odd = place.odd || !is_item(item);
    return;
  }
  ++place.objects;
  place.odd = place.odd || depth > kDeepest;
  if (place.odd) return;
  for (const auto& [key, inner] : value.items()) {
    ++place.pairs;
    place.numbers_alone = place.numbers_alone && inner.is_number();
    if (!place.within.contains(key)) place.keys.push_back(key);
    look_at(inner, depth + 1, place.within[key]);
  }
}

std::string text_of(const Object& value) {
  if (value.is_null()) return "";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void add_item(const std::string& item, std::string& cell) {
  if (!cell.empty()) cell += SampledColumn::kItemEnd;
  cell += item;
}

std::string cell_of(const Object& value, SampledColumn& column) {
  std::string cell;
  if (value.is_object()) {
    column.weighted = true;
    for (const auto& [id, weight] : value.items()) add_item(id, cell);
  } else if (value.is_array()) {
    for (const Object& item : value) {
      column.weighted = column.weighted || (item.is_object() && item.contains("weight"));
      add_item(text_of(item.is_object() ? item["id"] : item), cell);
    }
  } else {
    return text_of(value);
  }
  return cell;
}

/// Columns of which the keys lie in `place`, and the keys on the way to each.
void find_columns(const Place& place, const std::vector<std::string>& way,
                  std::vector<SampledColumn>& columns,
                  std::vector<std::vector<std::string>>& ways) {
  for (const std::string& key : place.keys) {
    const Place& inner = place.within.at(key);
    std::vector<std::string> there = way;
    there.push_back(key);
    if (inner.has_columns_within() && !inner.odd) {
      find_columns(inner, there, columns, ways);
      continue;
    }
    SampledColumn column;
    for (const std::string& part : there) column.name += (column.name.empty() ? "" : ".") + part;
    column.list = inner.list || inner.is_bag();
    if (inner.odd || (inner.objects > 0 && inner.others)) column.type = CellType::unread;
    columns.push_back(std::move(column));
    ways.push_back(std::move(there));
  }
}

/// The value at the end of a way; none where a key is not there.
const Object* value_at(const Object& row, const std::vector<std::string>& way) {
  const Object* value = &row;
  for (const std::string& key : way) {
    if (!value->is_object()) return nullptr;
    const auto found = value->find(key);
    if (found == value->end()) return nullptr;
    value = &*found;
  }
  return value;
}

std::optional<Object> row_of(const std::string& line) {
  Object row = Object::parse(line, nullptr, false);
  if (!row.is_object()) return std::nullopt;
  return row;
}

}  // namespace

std::vector<SampledColumn> columns_of_json(std::span<const std::string> lines, size_t most_cells) {
  Place rows;
  for (const std::string& line : lines) {
    if (const auto row = row_of(line); row.has_value()) look_at(*row, 0, rows);
  }
  std::vector<SampledColumn> columns;
  std::vector<std::vector<std::string>> ways;
  find_columns(rows, {}, columns, ways);
  const size_t most_rows = std::max<size_t>(most_cells / std::max<size_t>(columns.size(), 1), 1);
  for (const std::string& line : lines) {
    if (!columns.empty() && columns[0].rows() == most_rows) break;
    const auto row = row_of(line);
    if (!row.has_value()) continue;
    for (size_t c = 0; c < columns.size(); ++c) {
      const Object* value = value_at(*row, ways[c]);
      const bool read = value != nullptr && columns[c].type != CellType::unread;
      columns[c].add(read ? cell_of(*value, columns[c]) : "");
    }
  }
  return columns;
}

}  // namespace recmill::reader
