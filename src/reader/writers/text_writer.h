// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "reader/writers/writer.h"

namespace recmill::reader {

/// Criteo's TSV: label, 13 integers, 26 hexadecimal ids; a missing cell is empty.
Result<std::unique_ptr<Writer>> open_criteo_writer(const std::string& path,
                                                   const DataSchema& schema, Files& files);

/// CSV with a header, its columns as written_columns() says. Numbers are the shortest decimal that
/// reads back as the same float; a missing one is an empty cell.
Result<std::unique_ptr<Writer>> open_csv_writer(const std::string& path, const DataSchema& schema,
                                                Files& files);

}  // namespace recmill::reader
