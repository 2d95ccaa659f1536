// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <exception>
#include <string>

#include "base/status.h"

namespace recmill::model {

/// LibTorch reports by exceptions, and none leaves this room: what `body` returns, or the first
/// line of what it throws.
template <typename Body>
Status guarded(const char* what, const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::string line = error.what();
    line.resize(std::min(line.size(), line.find('\n')));
    return Status::Failed(std::string("model: ") + what + ": " + line);
  }
}

}  // namespace recmill::model
