// SPDX-License-Identifier: Apache-2.0
// A rival of a benchmark: a Python script of bench/rivals/ in a process that lives as long as the
// case, so that both sides alternate in one run. It reads one JSON object a line on stdin and
// answers each with one on stdout; bulk goes through files of the case's folder.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"

namespace recmill::bench {

class Rival {
 public:
  /// Starts `python` with `arguments` (script first). The script's stderr is shown.
  static Result<Rival> start(const std::string& python, const std::vector<std::string>& arguments);
  ~Rival();
  Rival(Rival&& other) noexcept;
  Rival& operator=(Rival&& other) noexcept;

  /// Sends one request and waits for its answer, at most so many seconds where there is a limit:
  /// then its process is ended. An answer with an "error", or none, is a failure that names the
  /// script.
  Result<Json> ask(const Json& request, std::optional<int> limit_s = {});
  pid_t pid() const { return pid_; }

 private:
  Rival() = default;
  void stop();
  std::string script_;
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace recmill::bench
