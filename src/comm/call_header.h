// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace recmill {

/// What ranks tell each other of a call before its bytes, so that those that are not in step find
/// out.
struct CallHeader {
  enum class Call : int32_t { all_to_all, all_gather, broadcast, barrier, exchange, window };
  Call call = Call::barrier;
  int32_t root = 0;
  uint64_t number = 0;  // of the call, from 0
  uint64_t bytes = 0;   // that follow
};

/// As messages name it.
const char* name_of(CallHeader::Call call);

/// An error where what `from` (its name) sent is of another call than `expected`, this rank's.
Status check(const CallHeader& header, const CallHeader& expected, const std::string& from);

}  // namespace recmill
