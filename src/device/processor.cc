// SPDX-License-Identifier: Apache-2.0
#include "device/processor.h"

#include <unistd.h>

#include <fstream>
#include <thread>

namespace recmill {

std::string processor_model(std::istream& cpuinfo) {
  std::string name = "unknown processor", family, model;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_first_of("\t:")),
                      value = line.substr(colon + 2);
    if (key == "model name") name = value;
    if (key == "cpu family") family = value;
    if (key == "model") model = value;
  }
  if (!family.empty()) name += " family " + family;
  if (!model.empty()) name += " model " + model;
  return name;
}

Processor this_processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  Processor processor{processor_model(cpuinfo), int64_t{1} << 20};
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
