// SPDX-License-Identifier: Apache-2.0
// write_gpu_preprocess_sample FILE: writes gpu_preprocess_source(), and gpu_preprocess_entry().
#include <cstdio>
#include <fstream>

#include "preprocess/run/gpu_preprocess_source.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: write_gpu_preprocess_sample FILE\n");
    return 2;
  }
  const auto source = recmill::preprocess::gpu_preprocess_source("the tests");
  std::ofstream file(arguments[1]);
  file << source.text << "\nnamespace recmill::preprocess {\n"
       << "void gpu_preprocess_entry(const void* arguments) {\n  " << source.entry
       << "_emulated(arguments);\n}\n}\n";
  return file.flush().good() ? 0 : 1;
}
