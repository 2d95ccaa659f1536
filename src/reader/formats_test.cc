// SPDX-License-Identifier: Apache-2.0
// Random tables of all types, written in every format, are read back to the same batches.
#include <arrow/json/from_string.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/random.h"
#include "reader/testing/foreign_file.h"

namespace recmill::reader {
namespace {

/// A number or a text, as a file would write it.
struct Value {
  bool there = false;
  std::string text;
  std::string weight = "";  // of an item of a bag
};

struct Column {
  ColumnSpec spec;
  bool text = false;                     // else numbers
  bool list = false;                     // role id
  bool weighted = false;                 // role id, lists
  int scale = 0;                         // of numbers: digits behind the point
  int bits = 7;                          // of numbers without a point: magnitudes are below 2^bits
  std::vector<std::vector<Value>> rows;  // one value, or those of a list
};

struct Table {
  std::vector<Column> columns;
  size_t rows = 0;
};

/// Numbers that are a function of a seed.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed, Purpose::test) {}
  uint64_t below(uint64_t count) { return random_.below(count, next_++); }
  bool one_in(uint64_t count) { return below(count) == 0; }
  template <typename T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  const Random random_;
  uint64_t next_ = 0;
};

std::string random_number(const Column& column, Dice& dice) {
  if (dice.one_in(6)) return column.scale == 0 ? "-1" : "-1.000";
  const auto magnitude = static_cast<int64_t>(dice.below(uint64_t{1} << column.bits));
  const std::string sign = dice.one_in(3) && magnitude > 0 ? "-" : "";
  if (column.scale == 0) return sign + std::to_string(magnitude);
  return fmt::format("{}{}.{:03}", sign, magnitude, dice.below(1000));
}

std::string random_word(const Column& column, Dice& dice) {
  if (column.spec.id_text == IdText::hex) return fmt::format("{:x}", dice.below(uint64_t{1} << 40));
  static const std::vector<std::string> words{"a",
                                              "-",
                                              "B b",
                                              "näse",
                                              "0",
                                              "7",
                                              "-1",
                                              "x\ty",
                                              "\xE6\x97\xA5\xE6\x9C\xAC",
                                              "longer than the twelve bytes of a view"};
  static const std::vector<std::string> odd_words{"a,b",        "say \"so\"", "\"",
                                                  "two\nlines", " ",          "|:"};
  return !column.list && dice.one_in(5) ? dice.of(odd_words) : dice.of(words);
}

Value random_value(const Column& column, Dice& dice) {
  Value value;
  const bool may_be_null =
      column.spec.role == ColumnRole::dense || column.spec.role == ColumnRole::id;
  value.there = !(may_be_null && dice.one_in(5));
  if (!value.there) return value;
  static const std::vector<std::string> labels{"0", "1", "0.5", "0.25"};
  static const std::vector<std::string> weights{"0.5", "1", "0.125", "2", "0", "-3"};
  switch (column.spec.role) {
    case ColumnRole::label:
      value.text = dice.of(labels);
      break;
    case ColumnRole::sample_weight:
      value.text = dice.of(weights);
      if (value.text == "-3") value.text = "1e-50";  // 0
      break;
    default:
      value.text = column.text ? random_word(column, dice) : random_number(column, dice);
  }
  if (column.weighted) value.weight = dice.of(weights);
  return value;
}

Column random_column(std::string name, ColumnRole role, size_t rows, Dice& dice) {
  Column column;
  column.spec.name = std::move(name);
  column.spec.role = role;
  column.spec.id_text = IdText::integer;
  const bool id = role == ColumnRole::id;
  if (role == ColumnRole::dense && dice.one_in(2)) column.scale = 3;
  if (!(role == ColumnRole::dense && column.scale > 0)) column.bits = dice.of<int>({7, 31, 50});
  if ((id || role == ColumnRole::group) && dice.one_in(2)) {
    column.text = true;
    column.spec.id_text = dice.one_in(3) ? IdText::hex : IdText::text;
  }
  if (id && dice.one_in(2)) {
    column.list = true;
    column.spec.list_separator = "|";
    column.weighted = dice.one_in(2);
    if (column.weighted) column.spec.weight_separator = ":";
  }
  if ((role == ColumnRole::dense || id) && dice.one_in(2)) {
    column.spec.missing = {column.text ? "-" : "-1", "NA"};
  }
  for (size_t row = 0; row < rows; ++row) {
    auto& cell = column.rows.emplace_back(column.list ? dice.below(4) : 1);
    for (Value& value : cell) value = random_value(column, dice);
  }
  return column;
}

Table random_table(uint64_t seed) {
  Dice dice(seed);
  Table table;
  table.rows = 1 + dice.below(30);
  const auto add = [&](const std::string& name, ColumnRole role) {
    table.columns.push_back(random_column(name, role, table.rows, dice));
  };
  add("y", ColumnRole::label);
  if (dice.one_in(2)) add("w", ColumnRole::sample_weight);
  if (dice.one_in(2)) add("t", ColumnRole::time);
  if (dice.one_in(2)) add("s.g", ColumnRole::group);
  const uint64_t dense = dice.below(4), ids = 1 + dice.below(4);
  for (uint64_t i = 0; i < dense; ++i) {
    add((dice.one_in(3) ? "s.d" : "d") + std::to_string(i), ColumnRole::dense);
  }
  for (uint64_t i = 0; i < ids; ++i) {
    add((dice.one_in(3) ? "s.in.i" : "i") + std::to_string(i), ColumnRole::id);
  }
  return table;
}

/// The rows of a batch for eyes: floats as the shortest decimals that only they have.
std::vector<std::string> shown(const DataSchema& schema, const ColumnBatch& batch) {
  RECMILL_CHECK(static_cast<int64_t>(samples_of(schema, batch).size()) == batch.samples);
  std::vector<std::string> rows;
  for (size_t row = 0; row < static_cast<size_t>(batch.samples); ++row) {
    std::string& text = rows.emplace_back(fmt::format("y {}", batch.labels[row]));
    if (schema.has_sample_weight) text += fmt::format(" w {}", batch.sample_weights[row]);
    if (schema.has_time) text += fmt::format(" t {}", batch.times[row]);
    if (schema.has_group) text += fmt::format(" g {:x}", batch.groups[row]);
    for (size_t c = 0; c < schema.dense.size(); ++c) {
      text += fmt::format(" {} {}", schema.dense[c], batch.dense[c][row]);
    }
    for (size_t c = 0; c < schema.ids.size(); ++c) {
      const IdColumn& ids = batch.ids[c];
      text += " " + schema.ids[c];
      for (auto i = ids.offsets[row]; i < ids.offsets[row + 1]; ++i) {
        const auto at = static_cast<size_t>(i);
        text += fmt::format(" {:x}", ids.ids[at]);
        if (!ids.weights.empty()) text += fmt::format(":{}", ids.weights[at]);
      }
    }
  }
  return rows;
}

/// What every format must give, told by C's own conversions.
class Expected {
 public:
  explicit Expected(const Table& table) {
    batch_.samples = static_cast<int64_t>(table.rows);
    for (const Column& column : table.columns) add(column);
  }
  std::vector<std::string> rows() const { return shown(schema_, batch_); }

 private:
  static bool is_missing(const Column& column, const Value& value) {
    if (!value.there) return true;
    const bool listed = !column.spec.missing.empty();
    if (column.text) return value.text.empty() || (listed && value.text == "-");
    return listed && std::strtod(value.text.c_str(), nullptr) == -1;
  }
  static float number(const std::string& text) { return std::strtof(text.c_str(), nullptr); }
  static uint64_t id(const Column& column, const std::string& text) {
    if (column.spec.id_text == IdText::text) return hash_bytes(text);
    if (column.spec.id_text == IdText::hex) return std::strtoull(text.c_str(), nullptr, 16);
    return static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 10));
  }

  void add(const Column& column) {
    switch (column.spec.role) {
      case ColumnRole::label:
        for (const auto& row : column.rows) batch_.labels.push_back(number(row[0].text));
        return;
      case ColumnRole::sample_weight:
        schema_.has_sample_weight = true;
        for (const auto& row : column.rows) batch_.sample_weights.push_back(number(row[0].text));
        return;
      case ColumnRole::time:
        schema_.has_time = true;
        for (const auto& row : column.rows) batch_.times.push_back(std::atoll(row[0].text.c_str()));
        return;
      case ColumnRole::group:
        schema_.has_group = true;
        for (const auto& row : column.rows) batch_.groups.push_back(id(column, row[0].text));
        return;
      case ColumnRole::dense: {
        schema_.dense.push_back(column.spec.name);
        auto& numbers = batch_.dense.emplace_back();
        for (const auto& row : column.rows) {
          numbers.push_back(is_missing(column, row[0]) ? std::numeric_limits<float>::quiet_NaN()
                                                       : number(row[0].text));
        }
        return;
      }
      default:
        add_ids(column);
    }
  }

  void add_ids(const Column& column) {
    schema_.ids.push_back(column.spec.name);
    IdColumn& ids = batch_.ids.emplace_back();
    ids.offsets.push_back(0);
    for (const auto& row : column.rows) {
      for (const Value& value : row) {
        if (is_missing(column, value)) continue;
        ids.ids.push_back(id(column, value.text));
        if (column.weighted) ids.weights.push_back(number(value.weight));
      }
      ids.offsets.push_back(static_cast<int64_t>(ids.ids.size()));
    }
  }

  DataSchema schema_;
  ColumnBatch batch_;
};

std::string quoted_csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

std::string csv_of(const Table& table) {
  std::string text;
  for (const Column& column : table.columns) text += (text.empty() ? "" : ",") + column.spec.name;
  text += '\n';
  for (size_t row = 0; row < table.rows; ++row) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Column& column = table.columns[c];
      std::string cell;
      for (size_t i = 0; i < column.rows[row].size(); ++i) {
        const Value& value = column.rows[row][i];
        if (i > 0) cell += '|';
        if (!value.there) continue;
        cell += value.text;
        if (column.weighted) cell += ":" + value.weight;
      }
      text += (c == 0 ? "" : ",") + quoted_csv(cell);
    }
    text += '\n';
  }
  return text;
}

using Json = nlohmann::ordered_json;

std::string json_of(const Column& column, const Value& value) {
  if (!value.there) return "null";
  return column.text ? Json(value.text).dump() : value.text;
}

/// A cell of JSON lines: weighted bags as objects of ids, or as lists of objects.
std::string json_cell(const Column& column, const std::vector<Value>& cell, Dice& dice) {
  if (!column.list) return json_of(column, cell[0]);
  const bool all_there = std::ranges::all_of(cell, &Value::there);
  const bool as_object = column.weighted && all_there && dice.one_in(2);
  std::string text;
  for (const Value& value : cell) {
    if (!text.empty()) text += ", ";
    if (as_object) {
      text += Json(value.text).dump() + ": " + value.weight;
    } else if (column.weighted) {
      text += "{\"weight\": " + (value.there ? value.weight : "null") +
              ", \"id\": " + json_of(column, value) + "}";
    } else {
      text += json_of(column, value);
    }
  }
  return as_object ? "{" + text + "}" : "[" + text + "]";
}

/// Members of an object by paths of names; objects of those that have a '.'.
std::string nested(const std::map<std::string, std::string>& members) {
  std::map<std::string, std::map<std::string, std::string>> inner;
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + Json(name).dump() + ": " + value;
  };
  for (const auto& [name, value] : members) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) {
      add(name, value);
    } else {
      inner[name.substr(0, dot)][name.substr(dot + 1)] = value;
    }
  }
  for (const auto& [name, own] : inner) add(name, nested(own));
  return "{" + text + "}";
}

std::string json_lines_of(const Table& table, Dice& dice) {
  std::string text;
  for (size_t row = 0; row < table.rows; ++row) {
    std::map<std::string, std::string> members;
    for (const Column& column : table.columns) {
      const auto& cell = column.rows[row];
      const bool none = cell.size() == 1 && !cell[0].there;
      if (none && dice.one_in(2)) continue;  // a key that is not there is null
      members[column.spec.name] = json_cell(column, cell, dice);
    }
    text += nested(members) + "\n";
  }
  return text;
}

/// What columnar files differ in.
struct FileKind {
  std::string suffix;
  bool views = false;       // string_view, list_view, dictionaries of any type
  bool is_unsigned = true;  // unsigned integers
  bool inner_nulls = true;  // structs in structs that are null
};

bool all_at_least_zero(const Column& column) {
  for (const auto& row : column.rows) {
    for (const Value& value : row) {
      if (value.there && value.text.starts_with('-')) return false;
    }
  }
  return true;
}

/// A type that holds all values of a column.
std::shared_ptr<arrow::DataType> random_type(const Column& column, const FileKind& kind,
                                             Dice& dice) {
  std::vector<std::shared_ptr<arrow::DataType>> types;
  const ColumnRole role = column.spec.role;
  if (column.text) {
    types = {arrow::utf8(), arrow::binary(), arrow::large_utf8()};
    if (kind.views) types.insert(types.end(), {arrow::utf8_view(), arrow::binary_view()});
  } else if (role == ColumnRole::label || role == ColumnRole::sample_weight) {
    types = {arrow::float32(), arrow::float64()};
  } else if (column.scale > 0) {
    types = {arrow::float32(), arrow::float64(), arrow::decimal128(12, 3),
             arrow::decimal128(30, 3)};
    if (kind.suffix != ".orc") types.push_back(arrow::decimal256(50, 3));
  } else {
    types = {arrow::int64(), arrow::float64(), arrow::decimal128(20, 0)};
    if (column.bits <= 31) types.push_back(arrow::int32());
    if (column.bits <= 7)
      types.insert(types.end(), {arrow::int8(), arrow::int16(), arrow::float32()});
    if (role == ColumnRole::dense) types.push_back(arrow::float32());
    if (kind.is_unsigned && all_at_least_zero(column)) types.push_back(arrow::uint64());
  }
  return dice.of(types);
}

std::string arrow_json(const Column& column, const Value& value, const arrow::DataType& type) {
  if (value.there && arrow::is_decimal(type.id())) return "\"" + value.text + "\"";
  return json_of(column, value);
}

/// The fields of one column, each a type and the values of its rows as JSON.
struct ArrowField {
  std::shared_ptr<arrow::DataType> type;
  std::vector<std::string> rows;
};

std::map<std::string, ArrowField> arrow_fields(const Column& column, const FileKind& kind,
                                               Dice& dice) {
  const auto type = random_type(column, kind, dice);
  const auto weight = dice.one_in(2) ? arrow::float32() : arrow::float64();
  bool all_there = true;
  for (const auto& row : column.rows) all_there &= std::ranges::all_of(row, &Value::there);
  const bool map = column.weighted && all_there && dice.one_in(2);
  const bool structs = column.weighted && !map && dice.one_in(2);
  const auto list_of = [&](const std::shared_ptr<arrow::DataType>& items) {
    return kind.views && dice.one_in(2) ? arrow::list_view(items)
           : dice.one_in(3)             ? arrow::large_list(items)
                                        : arrow::list(items);
  };
  ArrowField values, weights;
  for (const auto& row : column.rows) {
    std::string items, beside;
    for (const Value& value : row) {
      const std::string id = arrow_json(column, value, *type);
      const std::string its_weight = value.there ? value.weight : "null";
      if (!items.empty()) items += ", ", beside += ", ";
      items += map       ? "[" + id + ", " + its_weight + "]"
               : structs ? "{\"id\": " + id + ", \"weight\": " + its_weight + "}"
                         : id;
      beside += its_weight;
    }
    const bool null = column.list && row.empty() && dice.one_in(2);
    values.rows.push_back(null ? "null" : column.list ? "[" + items + "]" : items);
    weights.rows.push_back(null ? "null" : "[" + beside + "]");
  }
  values.type =
      !column.list ? type
      : map        ? arrow::map(type, weight)
      : structs
          ? list_of(arrow::struct_({arrow::field("id", type), arrow::field("weight", weight)}))
          : list_of(type);
  std::map<std::string, ArrowField> fields{{column.spec.name, values}};
  if (column.weighted && !map && !structs) {
    weights.type = list_of(weight);
    fields[column.spec.name + ".weights"] = weights;
  }
  return fields;
}

/// Fields that share a '.' path as fields of structs, which are null where all of theirs are. Those
/// in structs are not unless `inner_nulls`: Arrow's ORC writer gives a null one's fields a value.
std::map<std::string, ArrowField> with_structs(const std::map<std::string, ArrowField>& fields,
                                               size_t rows, bool inner_nulls, bool nulls = true) {
  std::map<std::string, std::map<std::string, ArrowField>> inner;
  std::map<std::string, ArrowField> result;
  for (const auto& [name, field] : fields) {
    const bool weights = name.ends_with(".weights");
    const size_t end = weights ? name.rfind('.') : name.size();
    const size_t dot = name.substr(0, end).find('.');
    if (dot == std::string::npos) {
      result[name] = field;
    } else {
      inner[name.substr(0, dot)][name.substr(dot + 1)] = field;
    }
  }
  for (const auto& [name, own] : inner) {
    const auto members = with_structs(own, rows, inner_nulls, inner_nulls);
    ArrowField& field = result[name];
    arrow::FieldVector types;
    for (const auto& [member, its] : members) types.push_back(arrow::field(member, its.type));
    field.type = arrow::struct_(types);
    for (size_t row = 0; row < rows; ++row) {
      std::string text;
      bool null = true;
      for (const auto& [member, its] : members) {
        text += (text.empty() ? "" : ", ") + Json(member).dump() + ": " + its.rows[row];
        null &= its.rows[row] == "null";
      }
      field.rows.push_back(null && nulls ? "null" : "{" + text + "}");
    }
  }
  return result;
}

DataOptions write_columnar(const Table& table, const FileKind& kind, Dice& dice) {
  std::map<std::string, ArrowField> fields;
  for (const Column& column : table.columns) fields.merge(arrow_fields(column, kind, dice));
  Foreign file;
  for (const auto& [name, field] : with_structs(fields, table.rows, kind.inner_nulls)) {
    std::string json;
    for (const std::string& row : field.rows) json += (json.empty() ? "[" : ", ") + row;
    auto array = arrow::json::ArrayFromJSONString(field.type, json + "]");
    EXPECT_TRUE(array.ok()) << array.status().ToString() << " " << field.type->ToString() << json;
    if (array.ok()) file.add_array(name, ColumnRole::ignore, *array);
  }
  file.rows_at_once = static_cast<int64_t>(1 + dice.below(table.rows));
  return file.write(kind.suffix);
}

DataOptions write_text(const std::string& name, const std::string& text, DataFormat format) {
  DataOptions options;
  options.format = format;
  options.train = {folder() + "/" + name};
  auto file = *posix_files().create(options.train[0]);
  EXPECT_TRUE(file->append(std::as_bytes(std::span(text))).ok() && file->close().ok());
  return options;
}

/// Reads a table as `options` say where it is; what is told where that fails.
std::vector<std::string> read(const Table& table, DataOptions options, ParserKind parser,
                              const std::string& what) {
  options.cache = "";
  options.shuffle.window = 7;
  options.columns.clear();
  for (const Column& column : table.columns) options.columns.push_back(column.spec);
  ThreadPool pool(2);
  const auto reader = open_reader(options, Subset::train, 0, pool, posix_files(), parser);
  EXPECT_TRUE(reader.ok()) << what << reader.status().message();
  if (!reader.ok()) return {};
  ColumnBatch batch;
  const Status status = (*reader)->read(0, 0, 1000, batch);
  EXPECT_TRUE(status.ok()) << what << status.message();
  return status.ok() ? shown((*reader)->schema(), batch) : std::vector<std::string>();
}

TEST(Formats, random_tables_are_read_back_to_the_same_batches_from_each) {
  const std::vector<FileKind> kinds{
      {".parquet"}, {".arrow", true}, {".arrows", true}, {".orc", false, false, false}};
  constexpr uint64_t kTables = 150;
  for (uint64_t seed = 0; seed < kTables && !::testing::Test::HasFailure(); ++seed) {
    const Table table = random_table(seed);
    const auto expected = Expected(table).rows();
    Dice dice(seed + 1'000'000);
    const std::string what = fmt::format("table {}, ", seed);
    const std::string csv = csv_of(table), json = json_lines_of(table, dice);
    const DataOptions csv_file = write_text("rows.csv", csv, DataFormat::csv);
    EXPECT_EQ(read(table, csv_file, ParserKind::fast, what + "csv: "), expected) << what << csv;
    EXPECT_EQ(read(table, csv_file, ParserKind::plain, what + "plain: "), expected) << what << csv;
    const DataOptions json_file = write_text("rows.jsonl", json, DataFormat::json_lines);
    EXPECT_EQ(read(table, json_file, ParserKind::fast, what + "json: "), expected) << what << json;
    for (const FileKind& kind : kinds) {
      const DataOptions file = write_columnar(table, kind, dice);
      EXPECT_EQ(read(table, file, ParserKind::fast, what + kind.suffix + ": "), expected)
          << what << kind.suffix << "\n"
          << csv;
    }
  }
}

}  // namespace
}  // namespace recmill::reader
