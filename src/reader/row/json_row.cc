// SPDX-License-Identifier: Apache-2.0
#include "reader/row/json_row.h"

#include <algorithm>

#include "base/json/json.h"

namespace recmill::reader {
namespace {

using Kind = JsonCell::Kind;

/// As an error shows it: short, and without control characters.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 120;
  std::string line(text.substr(0, kMost));
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 32; }, '?');
  return line;
}

/// Takes a JSON text's parts as they come: nothing is built of what no column asks for.
class RowHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  RowHandler(const TextLayout& layout, std::vector<JsonCell>& cells)
      : columns_(*layout.json), cells_(cells) {}

  const std::string& error() const { return error_; }

  bool null() override { return value(false, ""); }
  bool boolean(bool truth) override { return value(true, truth ? "1" : "0"); }
  /// Of negative ones, and of -0.
  bool number_integer(int64_t number) override {
    return value(true, number == 0 ? "-0" : std::to_string(number));
  }
  bool number_unsigned(uint64_t number) override { return value(true, std::to_string(number)); }
  bool number_float(double, const std::string& digits) override { return value(true, digits); }
  bool string(std::string& text) override { return value(false, std::move(text)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }

  bool start_object(size_t) override { return open(Kind::map); }
  bool start_array(size_t) override { return open(Kind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (passed_over_ > 0) return true;
    if (cell_ == nullptr) return begin_value(name);
    if (cell_->kind == Kind::map && inside_ == 1) {
      cell_->items.emplace_back().text = std::move(name);
    } else {
      item_key_ = std::move(name);
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& why) override {
    const std::string_view text = why.what();
    const size_t reason = text.find(": ");
    error_ = "is not a JSON object: at byte " + std::to_string(position) +
             (reason == std::string_view::npos ? "" : shown(text.substr(reason)));
    return false;
  }

 private:
  bool fail(std::string why) {
    error_ = std::move(why);
    return false;
  }

  /// Of the object of the row, or one in it that is no cell: what follows is the value of `name`.
  bool begin_value(const std::string& name) {
    path_.resize(ends_.back());
    if (!path_.empty()) path_ += '.';
    path_ += name;
    const auto found = columns_.by_name.find(path_);
    if (found == columns_.by_name.end()) return true;
    JsonCell& cell = cells_[static_cast<size_t>(found->second)];
    const auto keys = static_cast<int>(ends_.size());
    if (cell.keys == keys) return fail("has '" + shown(path_) + "' twice");
    if (cell.keys == 0 || keys < cell.keys) {
      cell = {};
      cell.keys = keys;
      cell_ = &cell;
    } else {
      hidden_ = true;
    }
    return true;
  }

  bool value(bool number, std::string text) {
    if (ends_.empty()) return fail("is not a JSON object");
    if (passed_over_ > 0) return true;
    hidden_ = false;
    if (cell_ == nullptr) return true;
    if (inside_ == 0) {
      cell_->kind = number ? Kind::number : Kind::string;
      cell_->text = std::move(text);
      cell_ = nullptr;
    } else if (inside_ == 1 && cell_->kind == Kind::list) {
      cell_->items.push_back({number, std::move(text), false, {}});
    } else if (inside_ == 1 && cell_->kind == Kind::map) {
      set_weight(std::move(text));
    } else if (inside_ == 2 && cell_->kind == Kind::list) {
      take_member(number, std::move(text));
    }
    return true;
  }

  /// Of an object in a list.
  void take_member(bool number, std::string text) {
    if (item_key_ == "weight") return set_weight(std::move(text));
    if (item_key_ != "id") return;
    item_has_id_ = true;
    cell_->items.back().number = number;
    cell_->items.back().text = std::move(text);
  }

  void set_weight(std::string text) {
    cell_->items.back().has_weight = true;
    cell_->items.back().weight = std::move(text);
  }

  bool open(Kind kind) {
    if (ends_.empty()) {
      if (kind != Kind::map) return fail("is not a JSON object");
      ends_.push_back(0);
    } else if (passed_over_ > 0 || hidden_) {
      hidden_ = false;
      ++passed_over_;
    } else if (cell_ == nullptr) {
      // A list has no columns in it.
      kind == Kind::map ? ends_.push_back(path_.size()) : static_cast<void>(++passed_over_);
    } else if (inside_++ == 0) {
      cell_->kind = kind;
    } else if (inside_ == 2 && cell_->kind == Kind::list && kind == Kind::map) {
      cell_->items.emplace_back();
      item_has_id_ = false;
    } else {
      cell_->kind = Kind::other;
    }
    return true;
  }

  bool close() {
    if (passed_over_ > 0) {
      --passed_over_;
    } else if (cell_ == nullptr) {
      ends_.pop_back();
    } else if (--inside_ == 0) {
      cell_ = nullptr;
    } else if (inside_ == 1 && !item_has_id_) {
      cell_->kind = Kind::other;
    }
    return true;
  }

  const JsonColumns& columns_;
  std::vector<JsonCell>& cells_;
  std::string error_;
  std::string path_;  // of the key read last
  std::vector<size_t>
      ends_;  // of the objects around it that are no cells: the sizes of their paths
  JsonCell* cell_ = nullptr;  // whose value is being read
  int inside_ = 0;            // lists and objects of that value that are open
  std::string item_key_;      // of an object in a list
  bool item_has_id_ = false;
  int64_t passed_over_ = 0;  // lists and objects that are open and no cell's
  bool hidden_ = false;      // the value that follows is that of a column with fewer keys
};

Status parse_id_of(const TextColumn& column, const JsonItem& item, RowValues& values) {
  const IdText text = item.number ? IdText::integer : column.spec.id_text;
  if (is_missing_id(text, column.missing, item.text)) return {};
  RECMILL_ASSIGN_OR_RETURN(const uint64_t id, parse_id(text, item.text));
  if (column.is_weighted()) {
    if (!item.has_weight) return not_a(item.text, "an id with a weight");
    RECMILL_ASSIGN_OR_RETURN(const float weight, parse_number(item.weight));
    values.weights[column.target].push_back(weight);
  } else if (item.has_weight) {
    return Status::Failed(
        "has weights, of which the first rows had none: a weight_separator says that it may");
  }
  values.ids[column.target].push_back(id);
  return {};
}

Status parse_bag(const TextColumn& column, const JsonCell& cell, RowValues& values) {
  values.ids[column.target].clear();
  values.weights[column.target].clear();
  if (!column.is_bag()) {
    return Status::Failed(
        "is a list, of which the first rows had none: a list_separator says that it may be");
  }
  for (const JsonItem& item : cell.items) {
    RECMILL_RETURN_IF_ERROR(parse_id_of(column, item, values));
  }
  return {};
}

Status parse_json_cell(const TextColumn& column, const JsonCell& cell, RowValues& values) {
  const ColumnRole role = column.spec.role;
  if (role == ColumnRole::ignore) return {};
  if (cell.kind == Kind::string && !(column.holds_weights && !cell.text.empty())) {
    return parse_cell(column, cell.text, values);
  }
  const bool number = cell.kind == Kind::number;
  if (number || cell.kind == Kind::string) {
    if (role == ColumnRole::id) {
      values.ids[column.target].clear();
      values.weights[column.target].clear();
      return parse_id_of(column, {number, cell.text, false, {}}, values);
    }
    if (role != ColumnRole::group) return parse_cell(column, cell.text, values);
    if (is_missing_id(IdText::integer, column.missing, cell.text)) {
      return Status::Failed("no value");
    }
    RECMILL_ASSIGN_OR_RETURN(values.group, parse_id(IdText::integer, cell.text));
    return {};
  }
  if (role == ColumnRole::id && cell.kind != Kind::other) return parse_bag(column, cell, values);
  return Status::Failed(role == ColumnRole::id
                            ? "is neither an id, nor a list of ids or of objects of 'id' and "
                              "'weight', nor an object of ids and weights"
                            : "is a list or an object; role " + std::string(name_of(role)) +
                                  " takes one value");
}

}  // namespace

Status split_json(const TextLayout& layout, std::string_view row, std::vector<JsonCell>& cells) {
  cells.assign(layout.columns.size(), {});
  RowHandler handler(layout, cells);
  if (nlohmann::json::sax_parse(row, &handler)) return {};
  return Status::Failed(handler.error());
}

Status split_json_texts(const TextLayout& layout, std::string_view row,
                        std::vector<std::string>& texts) {
  thread_local std::vector<JsonCell> cells;
  RECMILL_RETURN_IF_ERROR(split_json(layout, row, cells));
  texts.clear();
  for (const JsonCell& cell : cells) {
    std::string& text = texts.emplace_back(cell.text);
    for (const JsonItem& item : cell.items) {
      ((text += item.text) += '\0').append(item.weight) += '\0';
    }
  }
  return {};
}

Status parse_json_row(const TextLayout& layout, std::string_view row, RowValues& values) {
  thread_local std::vector<JsonCell> cells;
  RECMILL_RETURN_IF_ERROR(split_json(layout, row, cells));
  for (size_t i = 0; i < cells.size(); ++i) {
    const Status status = parse_json_cell(layout.columns[i], cells[i], values);
    if (!status.ok()) return status.at("column " + layout.columns[i].spec.name);
  }
  return {};
}

void find_json_bags(std::string_view text, TextLayout& layout, std::vector<bool>& seen) {
  std::vector<JsonCell> cells;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const bool whole = split_json(layout, text.substr(begin, end - begin), cells).ok();
    begin = end + 1;
    if (!whole) continue;  // told of when it is read, unless it is the last and cut
    for (size_t i = 0; i < cells.size(); ++i) {
      TextColumn& column = layout.columns[i];
      if (cells[i].keys > 0) seen[i] = true;
      const bool list = cells[i].kind == Kind::list || cells[i].kind == Kind::map;
      if (column.spec.role != ColumnRole::id || !list) continue;
      column.holds_lists = true;
      column.holds_weights |=
          std::ranges::any_of(cells[i].items, [](const JsonItem& item) { return item.has_weight; });
    }
  }
}

}  // namespace recmill::reader
