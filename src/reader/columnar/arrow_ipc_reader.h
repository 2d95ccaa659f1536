// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "reader/columnar/row_group_file.h"

namespace recmill::reader {

/// Opens an Arrow IPC file (Feather version 2), or a stream, by its first bytes; record batches are
/// the row groups. A field of one record batch is the least that is held in memory. Errors name the
/// file, and the column where one is at fault.
Result<std::unique_ptr<RowGroupFile>> open_arrow_ipc(Files& files, const std::string& path);

}  // namespace recmill::reader
