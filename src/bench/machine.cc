// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "device/processor.h"

namespace recmill::bench {
namespace {

struct Jiffies {
  int64_t total = 0;
  int64_t busy = 0;
};

/// All cores, of all processes. Time that a hypervisor took away counts as busy.
Jiffies machine_jiffies() {
  std::ifstream stat("/proc/stat");
  std::string name;
  stat >> name;
  Jiffies jiffies;
  int64_t value = 0;
  for (int field = 0; field < 8 && stat >> value; ++field) {
    jiffies.total += value;
    const bool idle = field == 3 || field == 4;  // idle, iowait
    if (!idle) jiffies.busy += value;
  }
  return jiffies;
}

/// User and system time of one process; 0 when it is gone.
int64_t process_jiffies(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream content;
  content << stat.rdbuf();
  const std::string text = content.str();
  const size_t after_name = text.rfind(')');  // the name may hold spaces
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));
  std::string field;
  int64_t jiffies = 0;
  for (int number = 3; number <= 15 && fields >> field; ++number) {
    if (number >= 14) jiffies += std::stoll(field);  // utime, stime
  }
  return jiffies;
}

}  // namespace

std::string machine_name() {
  return this_processor().name;
}

double core_to_core_ns() {
  if (std::thread::hardware_concurrency() < 2) return 0.0;
  constexpr int kTries = 5, kTrips = 4000;
  alignas(64) std::atomic<int> ball{0};  // even: ours
  const auto play = [&](int parity) {
    double best = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < kTries; ++tries) {
      const Stopwatch watch;
      for (int trip = 0; trip < kTrips; ++trip) {
        while (ball.load(std::memory_order_acquire) % 2 != parity) continue;
        ball.fetch_add(1, std::memory_order_release);
      }
      best = std::min(best, watch.seconds());
    }
    return best * 1e9 / (2.0 * kTrips);
  };
  std::thread other(play, 1);
  const double nanoseconds = play(0);
  other.join();
  return nanoseconds;
}

double foreign_load(std::span<const pid_t> own, double seconds) {
  const auto own_jiffies = [&] {
    int64_t sum = process_jiffies(getpid());
    for (pid_t pid : own) sum += process_jiffies(pid);
    return sum;
  };
  const Jiffies before = machine_jiffies();
  const int64_t own_before = own_jiffies();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const Jiffies after = machine_jiffies();
  const int64_t foreign = (after.busy - before.busy) - (own_jiffies() - own_before);
  const auto total = static_cast<double>(std::max<int64_t>(after.total - before.total, 1));
  return std::clamp(static_cast<double>(foreign) / total, 0.0, 1.0);
}

}  // namespace recmill::bench
