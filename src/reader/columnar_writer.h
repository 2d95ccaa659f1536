// SPDX-License-Identifier: Apache-2.0
// Parquet and Arrow IPC files. Physical form (docs/formats/columnar.md): one field for each column,
// in the order label, sample_weight, time, group, dense, ids; each field's metadata has its role
// under "recmill.role", by which a reader needs no data.columns. Missing values are nulls; an id
// column is uint64, or list<uint64> when it is a bag, with its weights beside it as
// list<float> "NAME.weights".
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "reader/writer.h"

namespace recmill::reader {

Result<std::unique_ptr<Writer>> open_parquet_writer(const WriterOptions& options,
                                                    const std::string& path,
                                                    const DataSchema& schema, Files& files);
Result<std::unique_ptr<Writer>> open_arrow_writer(const WriterOptions& options,
                                                  const std::string& path, const DataSchema& schema,
                                                  Files& files);

using NumberColumn = std::variant<std::span<const float>, std::span<const double>,
                                  std::span<const int64_t>, std::span<const uint64_t>>;

/// Writes columns of one length as the Parquet file `path`, whole or not at all: names[i] is the
/// name of columns[i].
Status write_columns_parquet(Files& files, const std::string& path,
                             const std::vector<std::string>& names,
                             const std::vector<NumberColumn>& columns);

}  // namespace recmill::reader
