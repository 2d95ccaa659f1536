// SPDX-License-Identifier: Apache-2.0
#include "reader/row/plain_text_parser.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/hash.h"
#include "reader/row/json_row.h"
#include "reader/row/libsvm_row.h"

namespace recmill::reader {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

// Whether a cell has no value; for a list, whether all of it has none.
bool is_missing(const TextColumn& column, std::string_view cell) {
  if (cell.empty()) return true;
  switch (column.spec.role) {
    case ColumnRole::id:
      if (!column.spec.list_separator.empty()) return column.missing.has_text(cell);
      return is_missing_id(column.spec.id_text, column.missing, cell);
    case ColumnRole::group:
      return is_missing_id(column.spec.id_text, column.missing, cell);
    case ColumnRole::time: {
      if (is_no_number(cell) || column.missing.has_text(cell)) return true;
      const auto time = column.missing.empty() ? Result<int64_t>(0) : parse_time(cell);
      return time.ok() && column.missing.has_time(*time);
    }
    default:
      return is_no_number(cell) || column.missing.has_number_in(cell);
  }
}

// One item of a list, or a whole cell: an id, with its weight where the column has weights. One
// that is missing is left out.
Status parse_item(const TextColumn& column, std::string_view item, std::vector<uint64_t>& ids,
                  std::vector<float>& weights) {
  const ColumnSpec& spec = column.spec;
  if (column.missing.has_text(item)) return {};
  float weight = 1;
  if (!spec.weight_separator.empty()) {
    const size_t at = item.rfind(spec.weight_separator[0]);
    if (at == std::string_view::npos) return not_a(item, "an id with a weight");
    RECMILL_ASSIGN_OR_RETURN(weight, parse_number(item.substr(at + 1)));
    item = item.substr(0, at);
  }
  if (is_missing_id(spec.id_text, column.missing, item)) return {};
  RECMILL_ASSIGN_OR_RETURN(const uint64_t id, parse_id(spec.id_text, item));
  ids.push_back(id);
  if (!spec.weight_separator.empty()) weights.push_back(weight);
  return {};
}

// A bag: the items of a list in order; empty items are none.
Status parse_bag(const TextColumn& column, std::string_view cell, std::vector<uint64_t>& ids,
                 std::vector<float>& weights) {
  const std::string& separator = column.spec.list_separator;
  if (is_missing(column, cell)) return {};
  if (separator.empty()) return parse_item(column, cell, ids, weights);
  while (true) {
    const size_t end = std::min(cell.find(separator), cell.size());
    if (end > 0) RECMILL_RETURN_IF_ERROR(parse_item(column, cell.substr(0, end), ids, weights));
    if (end == cell.size()) return {};
    cell.remove_prefix(end + separator.size());
  }
}

template <typename Value>
Status store(Result<Value> parsed, Value& target) {
  if (parsed.ok()) target = *parsed;
  return parsed.status();
}

// Reads the quoted cell at `at`; returns the offset past its closing quote.
Result<size_t> take_quoted(std::string_view row, size_t at, char quote, std::string& cell) {
  for (++at; at < row.size(); ++at) {
    const bool doubled = row[at] == quote && at + 1 < row.size() && row[at + 1] == quote;
    if (row[at] == quote && !doubled) return at + 1;
    cell += row[at];
    at += doubled ? 1 : 0;
  }
  return Status::Failed("a quote is not closed");
}

}  // namespace

Status split_cells(const TextLayout& layout, std::string_view row,
                   std::vector<std::string>& cells) {
  if (layout.rows == RowForm::json) return split_json_texts(layout, row, cells);
  cells.clear();
  for (size_t at = 0; true; at += layout.delimiter.size()) {
    // at: the first byte of a cell, then past its last.
    std::string& cell = cells.emplace_back();
    if (layout.quote != 0 && at < row.size() && row[at] == layout.quote) {
      RECMILL_ASSIGN_OR_RETURN(at, take_quoted(row, at, layout.quote, cell));
      if (at < row.size() && !row.substr(at).starts_with(layout.delimiter)) {
        return Status::Failed("text after a closing quote");
      }
    } else {
      const size_t end = std::min(row.find(layout.delimiter, at), row.size());
      cell = row.substr(at, end - at);
      at = end;
    }
    if (at == row.size()) return {};
  }
}

bool is_missing_id(IdText text, const NamedValues& missing, std::string_view cell) {
  if (text != IdText::integer) return cell.empty() || missing.has_text(cell);
  return is_no_number(cell) || missing.has_whole_in(cell);
}

Result<uint64_t> parse_id(IdText text, std::string_view cell) {
  if (text == IdText::text) return hash_bytes(cell);
  const char* const cell_end = cell.data() + cell.size();
  uint64_t id = 0;
  if (text == IdText::hex) {
    const auto [end, error] = std::from_chars(cell.data(), cell_end, id, 16);
    if (error == std::errc() && end == cell_end && cell.size() <= 16) return id;
    return not_a(cell, "a hexadecimal id of up to 16 digits");
  }
  const auto [end, error] = std::from_chars(cell.data(), cell_end, id);
  if (error == std::errc() && end == cell_end) return id;
  const auto whole = parse_whole(cell);
  if (!whole || (whole->negative && whole->magnitude > uint64_t{1} << 63)) {
    return not_a(cell, "an integer id");
  }
  return whole->negative ? 0 - whole->magnitude : whole->magnitude;
}

Status parse_cell(const TextColumn& column, std::string_view cell, RowValues& values) {
  const ColumnSpec& spec = column.spec;
  switch (spec.role) {
    case ColumnRole::ignore:
      return {};
    case ColumnRole::id:
      values.ids[column.target].clear();
      values.weights[column.target].clear();
      return parse_bag(column, cell, values.ids[column.target], values.weights[column.target]);
    case ColumnRole::dense:
      if (is_missing(column, cell)) {
        values.dense[column.target] = kMissing;
        return {};
      }
      return store(parse_number(cell), values.dense[column.target]);
    default:
      break;
  }
  if (is_missing(column, cell)) {
    if (!column.may_be_empty) return Status::Failed("no value");
    values.label = kMissing;
    return {};
  }
  switch (spec.role) {
    case ColumnRole::label:
      return store(column.label.read(cell), values.label);
    case ColumnRole::sample_weight:
      RECMILL_RETURN_IF_ERROR(store(parse_number(cell), values.sample_weight));
      return values.sample_weight < 0 ? negative_weight() : Status();
    case ColumnRole::time:
      return store(parse_time(cell), values.time);
    default:
      return store(parse_id(spec.id_text, cell), values.group);
  }
}

bool ends_inside_character(std::string_view row) {
  for (size_t back = 1; back <= std::min<size_t>(3, row.size()); ++back) {
    const auto byte = static_cast<unsigned char>(row[row.size() - back]);
    if (byte >= 0xC0) return back < (byte >= 0xF0 ? 4u : byte >= 0xE0 ? 3u : 2u);
    if (byte < 0x80) return false;
  }
  return false;
}

Status parse_row(const TextLayout& layout, std::string_view row, RowValues& values) {
  values.dense.resize(layout.schema.dense.size());
  values.ids.resize(layout.schema.ids.size());
  values.weights.resize(layout.schema.ids.size());
  values.label = kMissing;  // of a row that has none
  if (ends_inside_character(row)) return Status::Failed("the row ends inside a UTF-8 character");
  if (layout.rows == RowForm::libsvm) return parse_libsvm_row(layout, row, values);
  if (layout.rows == RowForm::json) return parse_json_row(layout, row, values);
  thread_local std::vector<std::string> cells;
  RECMILL_RETURN_IF_ERROR(split_cells(layout, row, cells));
  if (cells.size() != layout.columns.size()) {
    return Status::Failed("has " + std::to_string(cells.size()) + " columns instead of " +
                          std::to_string(layout.columns.size()));
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    const Status status = parse_cell(layout.columns[i], cells[i], values);
    if (!status.ok()) return status.at("column " + layout.columns[i].spec.name);
  }
  return {};
}

}  // namespace recmill::reader
