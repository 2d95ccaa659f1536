// SPDX-License-Identifier: Apache-2.0
#include "reader/plain_text_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/hash.h"

namespace recmill::reader {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

// A cell as an error shows it: short, and without control characters.
std::string shown(std::string_view cell) {
  std::string text;
  for (const char c : cell.substr(0, 40)) text += static_cast<unsigned char>(c) < 32 ? '?' : c;
  return "'" + text + (cell.size() > 40 ? "...'" : "'");
}

Status wrong(std::string_view cell, const char* what) {
  return Status::Failed(shown(cell) + " is not " + what);
}

bool is_missing(const ColumnSpec& spec, std::string_view cell) {
  return cell.empty() ||
         std::find(spec.missing.begin(), spec.missing.end(), cell) != spec.missing.end();
}

// One item of a list, or a whole cell: an id, with its weight where the column has weights.
Status parse_item(const ColumnSpec& spec, std::string_view item, std::vector<uint64_t>& ids,
                  std::vector<float>& weights) {
  if (!spec.weight_separator.empty()) {
    const size_t at = item.rfind(spec.weight_separator[0]);
    if (at == std::string_view::npos) return wrong(item, "an id with a weight");
    RECMILL_ASSIGN_OR_RETURN(const float weight, parse_number(item.substr(at + 1)));
    weights.push_back(weight);
    item = item.substr(0, at);
  }
  RECMILL_ASSIGN_OR_RETURN(const uint64_t id, parse_id(spec.id_text, item));
  ids.push_back(id);
  return {};
}

// A bag: the items of a list in order; empty items are none.
Status parse_bag(const ColumnSpec& spec, std::string_view cell, std::vector<uint64_t>& ids,
                 std::vector<float>& weights) {
  if (is_missing(spec, cell)) return {};
  if (spec.list_separator.empty()) return parse_item(spec, cell, ids, weights);
  while (true) {
    const size_t end = std::min(cell.find(spec.list_separator[0]), cell.size());
    if (end > 0) RECMILL_RETURN_IF_ERROR(parse_item(spec, cell.substr(0, end), ids, weights));
    if (end == cell.size()) return {};
    cell.remove_prefix(end + 1);
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
  cells.clear();
  for (size_t at = 0; true; ++at) {  // at: first byte of a cell, then past its last
    std::string& cell = cells.emplace_back();
    if (layout.quote != 0 && at < row.size() && row[at] == layout.quote) {
      RECMILL_ASSIGN_OR_RETURN(at, take_quoted(row, at, layout.quote, cell));
      if (at < row.size() && row[at] != layout.delimiter) {
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

Result<float> parse_number(std::string_view cell) {
  float value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) {
    return wrong(cell, "a finite number");
  }
  return value;
}

Result<int64_t> parse_integer(std::string_view cell) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return wrong(cell, "an integer");
  return value;
}

Result<uint64_t> parse_id(IdText text, std::string_view cell) {
  if (text == IdText::text) return hash_bytes(cell);
  if (text == IdText::integer && cell.starts_with('-')) {
    RECMILL_ASSIGN_OR_RETURN(const int64_t value, parse_integer(cell));
    return static_cast<uint64_t>(value);
  }
  uint64_t id = 0;
  const int base = text == IdText::hex ? 16 : 10;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), id, base);
  const bool too_long = base == 16 && cell.size() > 16;
  if (error != std::errc() || end != cell.data() + cell.size() || too_long) {
    return wrong(cell, base == 16 ? "a hexadecimal id of up to 16 digits" : "an integer id");
  }
  return id;
}

Status parse_cell(const TextColumn& column, std::string_view cell, RowValues& values) {
  const ColumnSpec& spec = column.spec;
  const bool missing = is_missing(spec, cell);
  switch (spec.role) {
    case ColumnRole::ignore:
      return {};
    case ColumnRole::id:
      values.ids[column.target].clear();
      values.weights[column.target].clear();
      return parse_bag(spec, cell, values.ids[column.target], values.weights[column.target]);
    case ColumnRole::dense:
      if (missing) {
        values.dense[column.target] = kMissing;
        return {};
      }
      return store(parse_number(cell), values.dense[column.target]);
    default:
      break;
  }
  if (missing) return Status::Failed("no value");
  switch (spec.role) {
    case ColumnRole::label:
      return store(parse_number(cell), values.label);
    case ColumnRole::sample_weight:
      return store(parse_number(cell), values.sample_weight);
    case ColumnRole::time:
      return store(parse_integer(cell), values.time);
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
  if (ends_inside_character(row)) return Status::Failed("the row ends inside a UTF-8 character");
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
