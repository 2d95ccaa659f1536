// SPDX-License-Identifier: Apache-2.0
#include "remote/row_lists.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace recmill::remote {
namespace {

constexpr size_t kWord = sizeof(int64_t);

/// Takes words off the front of bytes that may begin anywhere.
class Words {
 public:
  explicit Words(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t left() const { return bytes_.size(); }
  bool take(int64_t& word) { return take({&word, 1}); }
  bool take(std::span<int64_t> words) {
    if (bytes_.size() / kWord < words.size()) return false;
    if (!words.empty()) std::memcpy(words.data(), bytes_.data(), words.size_bytes());
    bytes_ = bytes_.subspan(words.size_bytes());
    return true;
  }
  std::span<const std::byte> take_bytes(size_t count) {
    return std::exchange(bytes_, bytes_.subspan(count)).first(count);
  }

 private:
  std::span<const std::byte> bytes_;
};

Status damaged() {
  return Status::Failed("a message names rows in no known way");
}

Status check_rows(const TableShape& shape, std::span<const int64_t> rows) {
  for (const int64_t row : rows)
    if (row < 0 || row >= shape.rows)
      return Status::Failed("table '" + shape.name + "': row " + std::to_string(row) +
                            " is outside of its " + std::to_string(shape.rows) + " rows");
  return {};
}

}  // namespace

std::vector<TableShape> shapes_of(std::span<const TableSpec> tables) {
  std::vector<TableShape> shapes;
  for (const TableSpec& table : tables)
    shapes.push_back({table.name, table.rows, table::RowRecord(table).bytes()});
  return shapes;
}

size_t record_bytes_of(std::span<const TableRows> tables, std::span<const TableShape> shapes) {
  size_t bytes = 0;
  for (const TableRows& of : tables)
    bytes += of.rows.size() * static_cast<size_t>(shapes[of.table].record_bytes);
  return bytes;
}

std::vector<std::byte> write_row_lists(std::span<const TableRows> tables, size_t record_bytes,
                                       size_t& first_record) {
  size_t words = 1 + 2 * tables.size();
  for (const TableRows& of : tables) words += of.rows.size();
  first_record = words * kWord;
  std::vector<std::byte> body(first_record + record_bytes);
  std::byte* to = body.data();
  const auto append = [&](std::span<const int64_t> some) {
    if (!some.empty()) std::memcpy(to, some.data(), some.size_bytes());
    to += some.size_bytes();
  };
  const auto count = static_cast<int64_t>(tables.size());
  append({&count, 1});
  for (const TableRows& of : tables) {
    const int64_t entry[] = {of.table, std::ssize(of.rows)};
    append(entry);
  }
  for (const TableRows& of : tables) append(of.rows);
  return body;
}

std::vector<std::byte> write_row_lists(std::span<const TableRows> tables) {
  size_t bytes = 0, at = 0;
  for (const TableRows& of : tables) bytes += of.records.size();
  auto body = write_row_lists(tables, bytes, at);
  for (const TableRows& of : tables) {
    std::ranges::copy(of.records, body.begin() + static_cast<std::ptrdiff_t>(at));
    at += of.records.size();
  }
  return body;
}

Result<std::vector<TableRows>> read_row_lists(std::span<const std::byte> body, bool has_records,
                                              std::span<const TableShape> shapes) {
  Words words(body);
  int64_t count = 0;
  if (!words.take(count) || count < 0 || count > std::ssize(shapes)) return damaged();
  std::vector<TableRows> tables(static_cast<size_t>(count));
  size_t rows = 0;
  for (TableRows& of : tables) {
    int64_t entry[2];
    const int64_t before = &of == tables.data() ? -1 : (&of - 1)->table;
    if (!words.take(entry)) return damaged();
    if (entry[0] < 0 || entry[0] >= std::ssize(shapes))
      return Status::Failed("there is no table " + std::to_string(entry[0]));
    const auto most = static_cast<int64_t>(body.size() / kWord);
    if (entry[0] <= before || entry[1] < 0 || entry[1] > most) return damaged();
    of.table = static_cast<int>(entry[0]);
    rows += static_cast<size_t>(entry[1]);
    if (rows > static_cast<size_t>(most)) return damaged();
    of.rows.resize(static_cast<size_t>(entry[1]));
  }
  for (TableRows& of : tables) {
    if (!words.take(of.rows)) return damaged();
    RECMILL_RETURN_IF_ERROR(check_rows(shapes[of.table], of.rows));
  }
  const size_t bytes = has_records ? record_bytes_of(tables, shapes) : 0;
  if (words.left() != bytes) return damaged();
  for (TableRows& of : tables)
    if (has_records)
      of.records =
          words.take_bytes(of.rows.size() * static_cast<size_t>(shapes[of.table].record_bytes));
  return tables;
}

}  // namespace recmill::remote
