// SPDX-License-Identifier: Apache-2.0
// Columns that are in memory, as a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/status.h"

namespace recmill::reader {

struct NamedColumn {
  std::string name;
  /// A number that is NaN is missing: null, or in csv an empty cell.
  std::variant<std::span<const float>, std::span<const double>, std::span<const int64_t>,
               std::span<const uint64_t>, std::span<const std::string>>
      values;

  size_t size() const {
    return std::visit([](const auto& of) { return of.size(); }, values);
  }
};

/// Whether the name of `path` says a format of columns: .parquet, .arrow or .feather, .csv (with a
/// header; also .gz or .zst). The error is a bad request.
Status check_column_file(const std::string& path);

/// Writes columns of one length as the file `path`, whole or not at all.
Status write_columns(Files& files, const std::string& path,
                     const std::vector<NamedColumn>& columns);

}  // namespace recmill::reader
