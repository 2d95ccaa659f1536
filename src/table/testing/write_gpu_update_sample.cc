// SPDX-License-Identifier: Apache-2.0
// write_gpu_update_sample FILE: writes the source of gpu_update_sample(), and gpu_update_entry().
#include <cstdio>
#include <fstream>

#include "table/testing/gpu_update_samples.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: write_gpu_update_sample FILE\n");
    return 2;
  }
  const auto source = recmill::table::gpu_update_sample();
  std::ofstream file(arguments[1]);
  file << source.text << "\nnamespace recmill::table {\n"
       << "void gpu_update_entry(const void* arguments) {\n  " << source.entry
       << "_emulated(arguments);\n}\n}\n";
  return file.flush().good() ? 0 : 1;
}
