// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "reader/columnar/row_group_file.h"

namespace recmill::reader {

/// Opens an ORC file; its stripes are the row groups. Errors name the file, and the column where
/// one is at fault.
Result<std::unique_ptr<RowGroupFile>> open_orc(Files& files, const std::string& path);

}  // namespace recmill::reader
