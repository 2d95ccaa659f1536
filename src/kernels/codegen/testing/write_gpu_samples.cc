// SPDX-License-Identifier: Apache-2.0
// write_gpu_samples FOLDER: writes the sources of gpu_samples(), and a list of their kernels.
#include <cstdio>
#include <fstream>

#include "kernels/codegen/gpu/gpu_distinct_source.h"
#include "kernels/codegen/testing/gpu_samples.h"

namespace recmill::kernels::codegen {
namespace {

/// Writes the sources, and adds to declarations; gives the list of their kernels.
std::string write_distinct(const std::string& folder, RowKeys keys, std::string& declared) {
  const std::string name = keys == RowKeys::wide ? "wide" : "narrow";
  const auto sources = gpu_distinct_sources(keys, "the tests");
  std::ofstream(folder + "/gpu_sample_distinct_rows_" + name + ".cc") << sources[0].text;
  std::string listed;
  for (const GpuSource& source : sources) {
    declared += "extern \"C\" void " + source.entry + "_emulated(const void*);\n";
    listed += "{\"" + source.entry + "\", {}, &" + source.entry + "_emulated}, ";
  }
  return "{" + listed + "}";
}

bool write_all(const std::string& folder) {
  std::ofstream list(folder + "/gpu_sample_list.cc");
  std::string declared, listed;
  for (const GpuSample& sample : gpu_samples()) {
    const GpuPoolSource source = source_of(sample);
    std::ofstream(folder + "/gpu_sample_" + sample.name + ".cc") << source.text;
    const std::string entry = source.entry + "_emulated";
    declared += "extern \"C\" void " + entry + "(const void*);\n";
    listed += "  if (name == \"" + sample.name + "\") return &" + entry + ";\n";
  }
  const std::string narrow = write_distinct(folder, RowKeys::narrow, declared);
  const std::string wide = write_distinct(folder, RowKeys::wide, declared);
  list << "#include \"kernels/codegen/testing/gpu_distinct_run.h\"\n"
          "#include \"kernels/codegen/testing/gpu_pool_run.h\"\n\n"
       << declared
       << "\nnamespace recmill::kernels::codegen {\n"
          "EmulatedEntry gpu_sample_entry(const std::string& name) {\n"
       << listed
       << "  return nullptr;\n}\n"
          "std::vector<KernelCode> gpu_distinct_sample(RowKeys keys) {\n"
          "  if (keys == RowKeys::wide) return "
       << wide << ";\n  return " << narrow << ";\n}\n}\n";
  return list.flush().good();
}

}  // namespace
}  // namespace recmill::kernels::codegen

int main(int count, char** arguments) {
  if (count == 2 && recmill::kernels::codegen::write_all(arguments[1])) return 0;
  std::fprintf(stderr, "usage: write_gpu_samples FOLDER\n");
  return 2;
}
