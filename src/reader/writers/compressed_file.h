// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/files.h"

namespace recmill::reader {

/// A file that compresses what is appended to it, as the name of `path` says: .gz (gzip), .zst
/// (Zstandard, a frame for every 8 MiB, so that readers can start at each), anything else as it is.
/// Takes `file`, closes it in close().
std::unique_ptr<WritableFile> compress_by_name(const std::string& path,
                                               std::unique_ptr<WritableFile> file);

}  // namespace recmill::reader
