// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace recmill {

/// The CPU device of this machine.
struct Processor {
  std::string name;      // "AMD EPYC family 26 model 2, 2 cores"
  int64_t l2_bytes = 0;  // a core's own second-level cache; 1 MiB where the system does not say
  int64_t shared_cache_bytes = 0;  // the third level; 0 where the system does not say
};

Processor this_processor();

/// What the text of /proc/cpuinfo calls its first processor, with the numbers that tell apart those
/// of one name.
std::string processor_model(std::istream& cpuinfo);

}  // namespace recmill
