// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "reader/data_options.h"

namespace recmill::reader {

/// The cells of column `name` of a Parquet, ORC or Arrow IPC file as text, all of them; a missing
/// one is empty. Errors name file and column.
Result<std::vector<std::string>> read_key_column(DataFormat format, const std::string& path,
                                                 const std::string& name, Files& files);

}  // namespace recmill::reader
