// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdio>
#include <cstdlib>

namespace recmill::internal {

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, condition,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

void no_value(const Status& why) {
  std::fprintf(stderr, "CHECK failed: a Result without a value: %s\n",
               why.ok() ? "made of a Status that is ok" : why.message().c_str());
  std::abort();
}

}  // namespace recmill::internal
