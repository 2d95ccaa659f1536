// SPDX-License-Identifier: Apache-2.0
// How long work shows itself: one rewritten line on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace recmill::train {

/// "1h02m", "3m20s", "12s".
std::string format_duration(double seconds);
/// "65.3K", "1.20M".
std::string format_count(double count);

class Progress {
 public:
  enum class Style { silent, lines, terminal };

  /// `total` items of work in all; 0: unknown. `unit` names them ("samples").
  Progress(Style style, std::string what, std::string unit, int64_t total);
  ~Progress();

  /// Tells how far the work is; shows it at most ten times a second on a terminal, every ten
  /// seconds as a line, and nothing before as much time has passed and some work is done. `detail`
  /// comes behind the rate.
  void show(int64_t done, const std::string& detail);
  /// A line that stays, above the progress line.
  void say(const std::string& line);

 private:
  double interval() const;  // seconds between two showings
  void clear();
  const Style style_;
  const std::string what_, unit_;
  const int64_t total_;
  Stopwatch since_start_;
  int64_t first_done_ = -1;  // work that a resumed run did not do itself
  double next_ = 0;
  bool on_screen_ = false;
};

}  // namespace recmill::train
