// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace recmill::reader {

/// Sets a file's time of change back, so that whatever is made of it from now on is later.
inline void change_long_ago(const std::string& path) {
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
}

}  // namespace recmill::reader
