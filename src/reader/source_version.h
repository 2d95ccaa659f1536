// SPDX-License-Identifier: Apache-2.0
// When something in the cache folder may be used in place of the files that it was made from.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/files.h"
#include "base/status.h"

namespace recmill::reader {

/// Absolute path, size and time of change of each of some files, and the latest of these times.
struct SourceVersion {
  std::string text;
  int64_t changed = 0;  // nanoseconds since 1970
};

Result<SourceVersion> version_of(Files& files, std::span<const std::string> paths);

/// Whether the file at `place` is there and was written after the sources last changed. Times of
/// change go in steps of some milliseconds: what was written within the same step may have been
/// made from text that was replaced since by text of the same size, and is not to be trusted.
bool is_later(Files& files, const std::string& place, const SourceVersion& sources);

}  // namespace recmill::reader
