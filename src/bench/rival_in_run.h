// SPDX-License-Identifier: Apache-2.0
// A rival in a run that goes on without it when it fails.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "bench/rival.h"

namespace recmill::bench {

/// Seconds for an answer, of which the first waits for imports and, it may be, for compilations.
inline constexpr int kRivalPatience_s = 90;

/// One that fails is out from then on: its process has ended, and its status says why.
class RivalInRun {
 public:
  RivalInRun(std::string system, Rival process)
      : system_(std::move(system)), process_(std::move(process)) {}

  /// The answer to {request: value}. Null when it is out, as it is when none comes in `limit_s`.
  Json ask(const std::string& request, const Json& value, int limit_s = kRivalPatience_s);
  /// What it says to take for the batches by `request`; 0 when it is out.
  double seconds(const std::string& request, std::span<const int64_t> order);
  /// Puts it out.
  void leave(const Status& why);

  const std::string& system() const { return system_; }
  /// OK as long as it takes part.
  const Status& status() const { return status_; }
  bool takes_part() const { return status_.ok(); }
  /// Of its process, while it takes part.
  pid_t pid() const { return process_->pid(); }

 private:
  std::string system_;
  std::optional<Rival> process_;
  Status status_;
};

}  // namespace recmill::bench
