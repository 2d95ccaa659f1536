// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <string>

#include "base/status.h"

namespace recmill::model {

/// LibTorch stays on the calling thread: threads are the caller's, a slice each.
inline void use_one_torch_thread() {
  thread_local bool told = false;
  if (!told) at::set_num_threads(1);
  told = true;
}

/// LibTorch reports by exceptions, and none leaves this library: what `body` returns, a Status or a
/// Result, or the first line of what it throws. LibTorch stays on this thread.
template <typename Body>
auto guarded(const char* what, const Body& body) -> decltype(body()) {
  use_one_torch_thread();
  try {
    return body();
  } catch (const std::exception& error) {
    std::string line = error.what();
    line.resize(std::min(line.size(), line.find('\n')));
    return Status::Failed(std::string("model: ") + what + ": " + line);
  }
}

}  // namespace recmill::model
