// SPDX-License-Identifier: Apache-2.0
// write_gpu_samples FOLDER: writes the sources of gpu_samples(), and a list of their kernels.
#include <cstdio>
#include <fstream>

#include "kernels/codegen/testing/gpu_samples.h"

namespace recmill::kernels::codegen {
namespace {

bool write_all(const std::string& folder) {
  std::ofstream list(folder + "/gpu_sample_list.cc");
  std::string declared, listed;
  for (const GpuSample& sample : gpu_samples()) {
    const GpuPoolSource source = source_of(sample);
    std::ofstream(folder + "/gpu_sample_" + sample.name + ".cc") << source.text;
    declared += "extern \"C\" void " + source.entry + "(recmill::kernels::gpu::PoolArguments);\n";
    listed += "  if (name == \"" + sample.name + "\") return &" + source.entry + ";\n";
  }
  list << "#include \"kernels/codegen/testing/gpu_pool_run.h\"\n\n"
       << declared
       << "\nnamespace recmill::kernels::codegen {\n"
          "GpuPoolEntry gpu_sample_entry(const std::string& name) {\n"
       << listed << "  return nullptr;\n}\n}\n";
  return list.flush().good();
}

}  // namespace
}  // namespace recmill::kernels::codegen

int main(int count, char** arguments) {
  if (count == 2 && recmill::kernels::codegen::write_all(arguments[1])) return 0;
  std::fprintf(stderr, "usage: write_gpu_samples FOLDER\n");
  return 2;
}
