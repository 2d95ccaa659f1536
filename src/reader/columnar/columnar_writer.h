// SPDX-License-Identifier: Apache-2.0
// Parquet and Arrow IPC files. Physical form (docs/formats/columnar.md): one field for each column,
// in the order label, sample_weight, time, group, dense, ids; each field's metadata has its role
// under "recmill.role", by which a reader needs no data.columns. Missing values are nulls; an id
// column is uint64, or list<uint64> when it is a bag, with its weights beside it as
// list<float> "NAME.weights".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reader/writers/column_file.h"
#include "reader/writers/writer.h"

namespace recmill::reader {

Result<std::unique_ptr<Writer>> open_parquet_writer(const WriterOptions& options,
                                                    const std::string& path,
                                                    const DataSchema& schema, Files& files);
Result<std::unique_ptr<Writer>> open_arrow_writer(const WriterOptions& options,
                                                  const std::string& path, const DataSchema& schema,
                                                  Files& files);

/// Writes columns of one length as the file `path` (write_columns()).
Status write_columns_parquet(Files& files, const std::string& path,
                             const std::vector<NamedColumn>& columns);
Status write_columns_arrow(Files& files, const std::string& path,
                           const std::vector<NamedColumn>& columns);

}  // namespace recmill::reader
