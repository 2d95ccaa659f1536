// SPDX-License-Identifier: Apache-2.0
// write_gpu_update_sample NUMBER FILE: writes that source of gpu_update_samples(), and its entry.
// write_gpu_update_sample all_ways FILE: writes that of gpu_update_sample_of_all_ways().
#include <cstdio>
#include <fstream>
#include <string>

#include "table/testing/gpu_update_samples.h"

int main(int count, char** arguments) {
  using namespace recmill::table;
  const std::string name = count == 3 ? arguments[1] : "";
  const auto sources = gpu_update_samples();
  const bool all_ways = name == "all_ways";
  if (count != 3 || (!all_ways && std::stoul(name) >= sources.size())) {
    std::fprintf(stderr, "usage: write_gpu_update_sample NUMBER|all_ways FILE\n");
    return 2;
  }
  std::ofstream file(arguments[2]);
  if (all_ways) {
    file << gpu_update_sample_of_all_ways().text;
  } else {
    const auto& source = sources[std::stoul(name)];
    file << source.text << "\nnamespace recmill::table {\n"
         << "void gpu_update_entry_" << name << "(const void* arguments) {\n  " << source.entry
         << "_emulated(arguments);\n}\n}\n";
  }
  return file.flush().good() ? 0 : 1;
}
