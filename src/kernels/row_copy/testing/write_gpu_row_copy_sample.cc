// SPDX-License-Identifier: Apache-2.0
// write_gpu_row_copy_sample FILE: writes the source of the kernel that copies rows, and its entry.
#include <cstdio>
#include <fstream>

#include "kernels/row_copy/gpu_row_copier.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: write_gpu_row_copy_sample FILE\n");
    return 2;
  }
  const auto source = recmill::kernels::gpu_row_copy_source("Recmill");
  std::ofstream file(arguments[1]);
  file << source.text << "\n#include \"kernels/row_copy/testing/gpu_row_copy_sample.h\"\n"
       << "namespace recmill::kernels {\nvoid gpu_row_copy_entry(const void* arguments) {\n  "
       << source.entry << "_emulated(arguments);\n}\n}\n";
  return file.flush().good() ? 0 : 1;
}
