// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdio>

namespace recmill::internal {

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, condition,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

}  // namespace recmill::internal
