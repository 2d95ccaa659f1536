// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/interface_counters.h"

#include <fstream>
#include <sstream>
#include <string>

namespace recmill::bench {
namespace {

constexpr int kReceived = 8;  // numbers of what was received go ahead of the bytes sent

}  // namespace

std::optional<uint64_t> sent_by_interfaces(std::string_view text) {
  std::optional<uint64_t> sum;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');  // "  eth0: 15 1 0 ..."; headings have none
    if (colon == std::string::npos) continue;
    std::istringstream name(line.substr(0, colon)), numbers(line.substr(colon + 1));
    std::string interface;
    name >> interface;
    if (interface == "lo") continue;
    uint64_t number = 0;
    for (int i = 0; i <= kReceived; ++i) numbers >> number;
    if (numbers) sum = sum.value_or(0) + number;
  }
  return sum;
}

std::optional<uint64_t> sent_on_the_wire() {
  std::ifstream file("/proc/self/net/dev");
  std::stringstream text;
  text << file.rdbuf();
  return sent_by_interfaces(text.str());
}

}  // namespace recmill::bench
