// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>

namespace recmill {
namespace {

std::atomic<LogLevel> g_level{LogLevel::info};

void write_line(LogLevel level, std::string_view prefix, std::string_view message) {
  if (g_level.load(std::memory_order_relaxed) < level) return;
  std::string line;
  line.reserve(prefix.size() + message.size() + 1);
  line.append(prefix).append(message).append("\n");
  // One write, so that lines of several threads do not mix.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void set_log_level(LogLevel level) {
  g_level.store(level, std::memory_order_relaxed);
}
LogLevel log_level() {
  return g_level.load(std::memory_order_relaxed);
}
void log_info(std::string_view message) {
  write_line(LogLevel::info, "", message);
}
void log_warning(std::string_view message) {
  write_line(LogLevel::warning, "warning: ", message);
}
void log_warning_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> written;
  const std::lock_guard lock(mutex);
  if (written.insert(message).second) log_warning(message);
}
void log_debug(std::string_view message) {
  write_line(LogLevel::debug, "debug: ", message);
}

}  // namespace recmill
