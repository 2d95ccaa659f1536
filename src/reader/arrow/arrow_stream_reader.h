// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "reader/columnar/row_group_file.h"

namespace recmill::reader {

/// Opens an Arrow IPC stream; its record batches are the row groups. A stream has no footer: it is
/// read through once here. A record batch, all fields of it, is the least that is held in memory.
Result<std::unique_ptr<RowGroupFile>> open_arrow_stream(Files& files, const std::string& path);

}  // namespace recmill::reader
