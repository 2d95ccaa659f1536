// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "reader/reader.h"
#include "reader/writers/writer.h"

namespace recmill::reader {

/// Rows written so far, of how many. Returns false to stop.
using ConvertProgress = std::function<bool(int64_t rows, int64_t of)>;

/// Writes the rows of `from`, in its order of epoch 0, to `path` (whole or not at all). Returns the
/// count of rows. Stopped by `progress`: an error that says so.
Result<int64_t> convert(Reader& from, const WriterOptions& options, const std::string& path,
                        Files& files, const ConvertProgress& progress);

}  // namespace recmill::reader
