// SPDX-License-Identifier: Apache-2.0
#include "device/processor.h"

#include <unistd.h>

#include <fstream>
#include <thread>

namespace recmill {

Processor this_processor() {
  Processor processor{"unknown processor", int64_t{1} << 20};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    processor.name = line.substr(line.find(':') + 2);
    break;
  }
  processor.name += ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) processor.l2_bytes = bytes;
#endif
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0)
    processor.shared_cache_bytes = bytes;
#endif
  return processor;
}

}  // namespace recmill
