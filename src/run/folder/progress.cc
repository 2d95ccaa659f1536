// SPDX-License-Identifier: Apache-2.0
#include "run/folder/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/log.h"

namespace recmill::train {

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

std::string format_count(double count) {
  if (count >= 1e9) return fmt::format("{:.2f}G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e3) return fmt::format("{:.1f}K", count / 1e3);
  return fmt::format("{:.0f}", count);
}

Progress::Progress(Style style, std::string what, std::string unit, int64_t total)
    : style_(style),
      what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      next_(interval()) {}

double Progress::interval() const {
  return style_ == Style::terminal ? 0.1 : 10.0;
}

Progress::~Progress() {
  clear();
}

void Progress::show(int64_t done, const std::string& detail) {
  if (first_done_ < 0) first_done_ = done;
  const double seconds = since_start_.seconds();
  // Before there is something to tell of there is no rate, and no share of the whole.
  if (style_ == Style::silent || seconds < next_ || done == first_done_) return;
  next_ = seconds + interval();
  const double rate = seconds > 0 ? static_cast<double>(done - first_done_) / seconds : 0;
  std::string line = fmt::format("{}: {}", what_, format_count(static_cast<double>(done)));
  if (total_ > 0) {
    const double percent = 100.0 * static_cast<double>(done) / static_cast<double>(total_);
    line += fmt::format(" of {} {} ({:.{}f} %)", format_count(static_cast<double>(total_)), unit_,
                        percent, percent < 10 ? 1 : 0);
  } else {
    line += " " + unit_;
  }
  line += fmt::format(", {}/s", format_count(rate));
  if (total_ > done && rate > 0) {
    line += ", " + format_duration(static_cast<double>(total_ - done) / rate) + " left";
  }
  if (!detail.empty()) line += ", " + detail;
  if (style_ == Style::lines) {
    log_info(line);
    return;
  }
  std::fprintf(stderr, "\r\x1b[2K%s", line.c_str());
  std::fflush(stderr);
  on_screen_ = true;
}

void Progress::say(const std::string& line) {
  if (style_ == Style::silent) return;
  clear();
  log_info(line);
}

void Progress::clear() {
  if (!on_screen_) return;
  std::fprintf(stderr, "\r\x1b[2K");
  std::fflush(stderr);
  on_screen_ = false;
}

}  // namespace recmill::train
