// SPDX-License-Identifier: Apache-2.0
#include "reader/source_version.h"

#include <algorithm>
#include <filesystem>

namespace recmill::reader {

Result<SourceVersion> version_of(Files& files, std::span<const std::string> paths) {
  SourceVersion version;
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(path));
    RECMILL_ASSIGN_OR_RETURN(const int64_t changed, files.changed_at(path));
    version.changed = std::max(version.changed, changed);
    version.text += std::filesystem::absolute(path).lexically_normal().string() + '\n' +
                    std::to_string(file->size()) + '\n' + std::to_string(changed) + '\n';
  }
  return version;
}

bool is_later(Files& files, const std::string& place, const SourceVersion& sources) {
  if (!files.exists(place)) return false;
  const auto written = files.changed_at(place);
  return written.ok() && *written > sources.changed;
}

}  // namespace recmill::reader
