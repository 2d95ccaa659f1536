// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <mutex>
#include <set>
#include <string>

namespace recmill {
namespace {

void write_line(std::string_view prefix, std::string_view message) {
  std::string line;
  line.reserve(prefix.size() + message.size() + 1);
  line.append(prefix).append(message).append("\n");
  // One write, so that lines of several threads do not mix.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void log_info(std::string_view message) {
  write_line("", message);
}
void log_warning(std::string_view message) {
  write_line("warning: ", message);
}
void log_warning_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> written;
  const std::lock_guard lock(mutex);
  if (written.insert(message).second) log_warning(message);
}

}  // namespace recmill
