// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "reader/columnar/row_group_file.h"

namespace recmill::reader {

/// Opens a Parquet file and reads its footer. Page checksums, where the file has them, are verified
/// by every read. Errors name the file, and the column where one is at fault.
Result<std::unique_ptr<RowGroupFile>> open_parquet(Files& files, const std::string& path);

}  // namespace recmill::reader
