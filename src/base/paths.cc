// SPDX-License-Identifier: Apache-2.0
#include "base/paths.h"

#include <filesystem>

namespace recmill {

std::string whole_path(const std::string& path) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::absolute(path.empty() ? "." : path, error);
  if (error) return path;
  whole = whole.lexically_normal();
  const bool ends_in_slash = !whole.has_filename() && whole.has_relative_path();
  return (ends_in_slash ? whole.parent_path() : whole).string();
}

std::string path_from(const std::string& folder, const std::string& path) {
  return path.empty() || folder.empty() ? path : (std::filesystem::path(folder) / path).string();
}

std::string path_below(const std::string& folder, const std::string& path) {
  return path.starts_with(folder + "/") ? path.substr(folder.size() + 1) : path;
}

bool same_place(const std::string& one, const std::string& other) {
  std::error_code error;
  return std::filesystem::equivalent(one, other, error) && !error;
}

}  // namespace recmill
