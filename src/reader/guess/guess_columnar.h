// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "reader/guess/sampled_column.h"

namespace recmill::reader {

/// Rows from the row groups of Parquet or Arrow IPC files, 131,072 in all. The fields of the first
/// file are those of all, or a file is refused by name. A file whose columns carry their roles
/// declares them.
Result<Sample> sample_columnar(Files& files, DataFormat format,
                               const std::vector<std::string>& paths);

}  // namespace recmill::reader
