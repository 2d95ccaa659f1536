// SPDX-License-Identifier: Apache-2.0
#include "reader/writers/column_file.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "reader/writers/compressed_file.h"
#ifdef RECMILL_WITH_ARROW
#include "reader/columnar/columnar_writer.h"
#endif

namespace recmill::reader {
namespace {

bool is_csv(const std::string& path) {
  return path.ends_with(".csv") || path.ends_with(".csv.gz") || path.ends_with(".csv.zst");
}
bool is_arrow(const std::string& path) {
  return path.ends_with(".arrow") || path.ends_with(".feather");
}

/// RFC 4180.
void append_cell(std::string_view cell, std::string& text) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) {
    text += cell;
    return;
  }
  text += '"';
  for (const char c : cell) {
    if (c == '"') text += '"';
    text += c;
  }
  text += '"';
}

template <typename Number>
requires std::is_arithmetic_v<Number>
void append_cell(Number value, std::string& text) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(value)) return;
  }
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_row(const std::vector<NamedColumn>& columns, size_t row, std::string& text) {
  for (const NamedColumn& column : columns) {
    if (&column != columns.data()) text += ',';
    std::visit([&](const auto& values) { append_cell(values[row], text); }, column.values);
  }
  text += '\n';
}

Status write_csv(Files& files, const std::string& path, const std::vector<NamedColumn>& columns) {
  constexpr size_t kFlushBytes = 1 << 20;
  RECMILL_ASSIGN_OR_RETURN(auto plain, AtomicFile::create(files, path));
  const auto file = compress_by_name(path, std::move(plain));
  std::string text;
  for (const NamedColumn& column : columns) {
    if (&column != columns.data()) text += ',';
    append_cell(std::string_view(column.name), text);
  }
  text += '\n';
  const size_t rows = columns.empty() ? 0 : columns[0].size();
  for (size_t row = 0; row < rows; ++row) {
    append_row(columns, row, text);
    if (text.size() < kFlushBytes) continue;
    RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
    text.clear();
  }
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return file->close();
}

}  // namespace

Status check_column_file(const std::string& path) {
  if (path.ends_with(".parquet") || is_arrow(path) || is_csv(path)) return {};
  return Status::BadRequest(path +
                            ": the name says no format; it may end in .parquet, .arrow, .feather "
                            "or .csv (also .csv.gz and .csv.zst)");
}

Status write_columns(Files& files, const std::string& path,
                     const std::vector<NamedColumn>& columns) {
  RECMILL_RETURN_IF_ERROR(check_column_file(path));
  for (const NamedColumn& column : columns)
    RECMILL_CHECK(column.size() == columns[0].size(), column.name);
  if (is_csv(path)) return write_csv(files, path, columns);
#ifdef RECMILL_WITH_ARROW
  return is_arrow(path) ? write_columns_arrow(files, path, columns)
                        : write_columns_parquet(files, path, columns);
#else
  return Status::BadRequest(path + ": this program was built without Arrow (RECMILL_ARROW=OFF)");
#endif
}

}  // namespace recmill::reader
