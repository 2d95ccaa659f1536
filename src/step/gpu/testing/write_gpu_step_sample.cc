// SPDX-License-Identifier: Apache-2.0
// write_gpu_step_sample NAME FILE: writes the source of one of gpu_step_samples(), and its entries.
#include <cstdio>
#include <fstream>
#include <string>

#include "step/gpu/gpu_step_source.h"
#include "step/gpu/testing/gpu_step_samples.h"

int main(int count, char** arguments) {
  using namespace recmill::train;
  for (const GpuStepSample& sample : gpu_step_samples()) {
    if (count != 3 || arguments[1] != std::string(sample.name)) continue;
    const auto sources = gpu_step_sources(sample.options, "the tests");
    std::ofstream file(arguments[2]);
    file << sources[0].text << "\n#include \"step/gpu/testing/gpu_step_samples.h\"\n"
         << "namespace recmill::train {\n"
         << "const std::array<GpuStepEntry, 4> gpu_step_" << sample.name << "{";
    for (const auto& source : sources)
      file << "\n    [](const void* arguments) { " << source.entry << "_emulated(arguments); },";
    file << "};\n}\n";
    return file.flush().good() ? 0 : 1;
  }
  std::fprintf(stderr, "usage: write_gpu_step_sample NAME FILE\n");
  return 2;
}
