// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace recmill {

/// The CPU device of this machine.
struct Processor {
  std::string name;      // "AMD EPYC, 2 cores"
  int64_t l2_bytes = 0;  // a core's own second-level cache; 1 MiB where the system does not say
  int64_t shared_cache_bytes = 0;  // the third level; 0 where the system does not say
};

Processor this_processor();

}  // namespace recmill
