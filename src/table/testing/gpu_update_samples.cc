// SPDX-License-Identifier: Apache-2.0
#include "table/testing/gpu_update_samples.h"

#include <algorithm>

#include "table/embedding_table.h"

namespace recmill::table {

std::vector<TableSpec> gpu_update_specs() {
  std::vector<TableSpec> specs;
  for (const auto& [kind, name] : EnumNames<OptimizerKind>::names) {
    for (const auto& [precision, precision_name] : EnumNames<RowPrecision>::names) {
      for (const int64_t dim : {1, 4, 17, 64, 300}) {
        // A kernel of many functions takes very long to be compiled.
        if (precision != RowPrecision::float32 && dim != 17 && dim != 64) continue;
        TableSpec& spec = specs.emplace_back();
        spec.name = "C" + std::to_string(specs.size());
        spec.rows = 50;
        spec.dim = dim;
        spec.precision = precision;
        spec.optimizer = {kind, 0.05, 1e-6, 0.1, 0.9, 0.99, 0.01, 0.02, 1.0};
        if (dim == 4 || dim == 17) spec.optimizer.l2 = 0.0;
      }
    }
  }
  for (const RowPrecision precision : {RowPrecision::float32, RowPrecision::float16}) {
    TableSpec wide = specs.front();
    wide.name = "wide" + std::to_string(specs.size());
    wide.dim = 1100;
    wide.precision = precision;
    wide.optimizer.kind = OptimizerKind::rowwise_adagrad;
    specs.push_back(wide);
  }
  TableSpec by_row = specs.front();
  by_row.name = "by_row";
  by_row.dim = 17;
  by_row.optimizer.kind = OptimizerKind::adam;
  by_row.optimizer.correction = BiasCorrection::row;
  specs.push_back(by_row);
  TableSpec two = specs.front();
  two.name = kTwoMemories;
  two.dim = 12;
  two.precision = RowPrecision::bfloat16;
  two.optimizer.kind = OptimizerKind::rowwise_adagrad;
  specs.push_back(two);
  return specs;
}

GpuUpdateFunction gpu_update_function(const TableSpec& spec) {
  const auto rows = EmbeddingTable::layout(spec, RowShare(spec.rows, 0, 1));
  const int slices = spec.dim == 17 ? 1 << kernels::gpu::kMostLevels : 16;
  return table::gpu_update_function(rows, spec.optimizer, slices, spec.name == kTwoMemories);
}

std::vector<GpuUpdateSource> gpu_update_samples() {
  std::vector<GpuUpdateFunction> functions;
  for (const TableSpec& spec : gpu_update_specs()) functions.push_back(gpu_update_function(spec));
  auto sources = gpu_update_sources(functions, "the tests", 8);
  RECMILL_CHECK(sources.size() == kGpuUpdateEntries.size());
  return sources;
}

// Whole gradients are looked at, by warps and by blocks, and read in several pieces.
TableSpec gpu_update_spec_of_all_ways() {
  const auto specs = gpu_update_specs();
  return *std::ranges::find_if(specs, [](const TableSpec& spec) {
    return spec.optimizer.kind == OptimizerKind::rowwise_adagrad && spec.dim == 300;
  });
}

GpuUpdateSource gpu_update_sample_of_all_ways() {
  const GpuUpdateFunction function = gpu_update_function(gpu_update_spec_of_all_ways());
  return gpu_update_sources({&function, 1}, "the tests").front();
}

}  // namespace recmill::table
