// SPDX-License-Identifier: Apache-2.0
// The body of a message that names rows, and may have their records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "remote/message.h"
#include "table/row_record.h"

namespace recmill::remote {

/// What both sides must know of a table to read rows.
struct TableShape {
  std::string name;
  int64_t rows = 0;
  int64_t record_bytes = 0;
};
std::vector<TableShape> shapes_of(std::span<const TableSpec> tables);

/// Rows of one table, in any order.
struct TableRows {
  int table = 0;
  std::vector<int64_t> rows;
  std::span<const std::byte> records;  // [rows][record bytes], or none
};

/// Of all records of `tables`.
size_t record_bytes_of(std::span<const TableRows> tables, std::span<const TableShape> shapes);

/// The body; records are appended where tables have them.
std::vector<std::byte> write_row_lists(std::span<const TableRows> tables);
/// The same with room for so many bytes of records behind it, which are not set.
std::vector<std::byte> write_row_lists(std::span<const TableRows> tables, size_t record_bytes,
                                       size_t& first_record);

/// Checks all of it: tables ascend, rows are within them, and nothing is missing or left. Records
/// point into `body`.
Result<std::vector<TableRows>> read_row_lists(std::span<const std::byte> body, bool has_records,
                                              std::span<const TableShape> shapes);

}  // namespace recmill::remote
