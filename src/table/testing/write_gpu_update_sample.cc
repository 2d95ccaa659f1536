// SPDX-License-Identifier: Apache-2.0
// write_gpu_update_sample NUMBER FILE: writes that source of gpu_update_samples(), and its entry.
#include <cstdio>
#include <fstream>
#include <string>

#include "table/testing/gpu_update_samples.h"

int main(int count, char** arguments) {
  const auto sources = recmill::table::gpu_update_samples();
  if (count != 3 || std::stoul(arguments[1]) >= sources.size()) {
    std::fprintf(stderr, "usage: write_gpu_update_sample NUMBER FILE\n");
    return 2;
  }
  const auto& source = sources[std::stoul(arguments[1])];
  std::ofstream file(arguments[2]);
  file << source.text << "\nnamespace recmill::table {\n"
       << "void gpu_update_entry_" << arguments[1] << "(const void* arguments) {\n  "
       << source.entry << "_emulated(arguments);\n}\n}\n";
  return file.flush().good() ? 0 : 1;
}
