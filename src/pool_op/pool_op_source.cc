// SPDX-License-Identifier: Apache-2.0
#include "pool_op/pool_op_source.h"

#include <algorithm>
#include <optional>

#include "batch/feature_layout.h"
#include "kernels/codegen/embedded_texts.h"
#include "kernels/codegen/generated_pool.h"
#include "kernels/codegen/gpu/compiled_gpu_pool.h"
#include "kernels/codegen/group_functions.h"
#include "kernels/codegen/source_writer.h"
#include "kernels/embedding_pool/gpu_templates.h"
#include "pool_op/embedded_texts.h"
#include "pool_op/pool_op.h"

namespace recmill::kernels::codegen {
namespace {

// ---- what is generated

PoolFunction gpu_function(const PoolOp& op, const PoolOpFeature& feature, Schedule schedule) {
  return gpu_pool_function(std::move(schedule), rows_of(op.tables[feature.table]), feature.pooling,
                           feature.weighted);
}

/// The one template of either device that is not right for all bags.
bool only_one_each(const PoolFunction& function) {
  return function.schedule.of == "one_each";
}

PoolFunction default_gpu_function(const PoolOp& op, const PoolOpFeature& feature) {
  return gpu_function(
      op, feature, default_gpu_pool_schedule(feature.pooling, rows_of(op.tables[feature.table])));
}

struct CpuFunctions {
  PoolFunction chosen, one_each, bags;
  FeatureWork cost;  // of a lookup and of a sample
};

/// What the feature's work is mapped by.
FeatureWork cost_of(const PoolKernel& kernel, const RowStorage& rows) {
  const int64_t no_offsets[] = {0};
  PoolTask task;
  task.bags.offsets = no_offsets;
  task.rows = rows;
  return FusedPool({kernel}).work({&task, 1})[0];
}

/// Bytes of the cache lines that a lookup asks for, as covering_lookups() counts them.
int64_t bytes_of_lookup(const RowStorage& rows) {
  return std::max<int64_t>(64, rows.dim * bytes_of(rows.precision));
}

CpuFunctions functions_of(const PoolOp& op, const PoolOpFeature& feature) {
  const RowStorage rows = rows_of(op.tables[feature.table]);
  const auto by_default = [&](bool one_each) {
    const auto kernel = find_pool_kernel(default_pool_schedule(feature.pooling, one_each));
    RECMILL_CHECK(kernel.ok(), kernel.status().message());
    return pool_function({rows, feature.pooling, feature.weighted, &*kernel});
  };
  CpuFunctions functions{{}, by_default(true), by_default(false), cost_of(feature.kernel, rows)};
  const bool generated =
      feature.kernel.of != nullptr && has_generated_form(feature.kernel.of->name);
  functions.chosen = generated
                         ? pool_function({rows, feature.pooling, feature.weighted, &feature.kernel})
                         : functions.one_each;
  return functions;
}

/// The kernel that has the function, and its place there.
template <class Sources, class SourceOf>
std::optional<pool_op::Place> find_place(const Sources& sources, const PoolFunction& function,
                                         const SourceOf& source_of) {
  for (size_t k = 0; k < sources.size(); ++k) {
    const auto& functions = source_of(sources[k]).functions;
    const auto at = std::ranges::find(functions, function);
    if (at != functions.end())
      return pool_op::Place{static_cast<int32_t>(k), static_cast<int32_t>(at - functions.begin())};
  }
  return std::nullopt;
}

// ---- how it is written

/// `text` as C++ has it, whatever is in it.
std::string quoted(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == ' ';
    if (plain) {
      all += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    all += {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
            static_cast<char>('0' + byte % 8)};
  }
  return all + "\"";
}

std::string text_of(const pool_op::Place& place) {
  return fmt::format("{{{}, {}}}", place.kernel, place.schedule);
}

const char* yes(bool value) {
  return value ? "true" : "false";
}

void write_kernels(SourceWriter& write, const std::vector<PoolSource>& kernels) {
  write("extern \"C\" {{");
  for (const PoolSource& kernel : kernels) {
    write("void {}(const recmill_generated::Feature* const* features,", kernel.entry);
    write("    const recmill_generated::Piece* pieces, int64_t count, void* scratch);");
  }
  write("}}");
  write("");
}

void write_tables(SourceWriter& write, const PoolOp& op) {
  write("constexpr Table tables[] = {{");
  for (const PoolOpTable& table : op.tables)
    write("{{{}, Weights::{}, {}}},", quoted(table.name), name_of(table.precision), table.dim);
  write("}};");
  write("constexpr Feature features[] = {{");
  for (const PoolOpFeature& feature : op.features)
    write("{{{}, {}, {}, {}}},", quoted(feature.name), feature.table,
          yes(is_pooled(feature.pooling)), yes(feature.weighted));
  write("}};");
}

void write_cpu(SourceWriter& write, const PoolOp& op, const std::vector<PoolSource>& kernels) {
  const auto place = [&](const PoolFunction& function) {
    return text_of(*find_place(
        kernels, function, [](const auto& of) -> auto& { return of; }));
  };
  write("constexpr CpuFeature cpu[] = {{");
  for (const PoolOpFeature& feature : op.features) {
    const CpuFunctions of = functions_of(op, feature);
    const RowStorage rows = rows_of(op.tables[feature.table]);
    write("{{{}, {}, {}, {}, {}, {:.17g}, {:.17g}, {}, {}}},", place(of.chosen),
          yes(only_one_each(of.chosen)), yes(stages(of.chosen.schedule)), place(of.one_each),
          place(of.bags), of.cost.per_lookup, of.cost.per_sample, rows.stride,
          bytes_of_lookup(rows));
  }
  write("}};");
  write("constexpr recmill_generated::Run kernels[] = {{");
  for (const PoolSource& kernel : kernels) write("{},", kernel.entry);
  write("}};");
}

Result<std::string> gpu_place(const PoolOp& op, const PoolFunction& function) {
  const auto place = find_place(
      op.gpu_kernels, function, [](const PoolOpGpuKernel& of) -> auto& { return of.source; });
  if (!place.has_value()) return Status::Failed("no kernel for GPUs has '" + function.name() + "'");
  RECMILL_ASSIGN_OR_RETURN(const auto kernel, find_gpu_pool_kernel(function.schedule));
  const GpuParts parts = kernel.of->parts(kernel.values);
  return fmt::format("{{{}, {{{}, {}, {}}}}}", text_of(*place), parts.samples, parts.lookups,
                     parts.piece);
}

Result<int64_t> alignment_of(const PoolFunction& function) {
  RECMILL_ASSIGN_OR_RETURN(const auto kernel, find_gpu_pool_kernel(function.schedule));
  return kernel.of->lanes(kernel.values) * bytes_of(function.precision);
}

Status write_gpu_features(SourceWriter& write, const PoolOp& op) {
  write("constexpr GpuFeature gpu[] = {{");
  for (const PoolOpFeature& feature : op.features) {
    const PoolFunction chosen = gpu_function(op, feature, feature.gpu);
    const PoolFunction otherwise =
        only_one_each(chosen) ? default_gpu_function(op, feature) : chosen;
    RECMILL_ASSIGN_OR_RETURN(const std::string first, gpu_place(op, chosen));
    RECMILL_ASSIGN_OR_RETURN(const std::string second, gpu_place(op, otherwise));
    RECMILL_ASSIGN_OR_RETURN(const int64_t a, alignment_of(chosen));
    RECMILL_ASSIGN_OR_RETURN(const int64_t b, alignment_of(otherwise));
    write("{{{}, {}, {}, {}}},", first, yes(only_one_each(chosen)), second, std::max(a, b));
  }
  write("}};");
  return {};
}

void write_gpu_kernels(SourceWriter& write, const PoolOp& op) {
  for (size_t k = 0; k < op.gpu_kernels.size(); ++k) {
    const auto& binaries = op.gpu_kernels[k].binaries;
    for (size_t b = 0; b < binaries.size(); ++b) {
      const std::string_view bytes(reinterpret_cast<const char*>(binaries[b].cubin.data()),
                                   binaries[b].cubin.size());
      write("alignas(64) constexpr char cubin_{}_{}[] =", k, b);
      constexpr size_t kLine = 4096;
      for (size_t at = 0; at < bytes.size(); at += kLine)
        write.line(quoted(bytes.substr(at, kLine)));
      write(";");
    }
    write("constexpr EmbeddedCubin cubins_{}[] = {{", k);
    for (size_t b = 0; b < binaries.size(); ++b)
      write("{{{}, cubin_{}_{}, {}}},", quoted(binaries[b].architecture), k, b,
            binaries[b].dynamic_shared);
    write("}};");
  }
  write("constexpr EmbeddedKernel gpu_kernels[] = {{");
  for (size_t k = 0; k < op.gpu_kernels.size(); ++k)
    write("{{{}, cubins_{}}},", quoted(op.gpu_kernels[k].source.entry), k);
  write("}};");
}

void write_model(SourceWriter& write, const PoolOp& op) {
  const std::string described = op.name + "_description";
  write("extern const Model model = {{");
  write(".name = {},", quoted(op.name));
  write(".schema = {},", quoted(pool_op_schema(op.name)));
  write(".description = {},", quoted(op.description));
  write(".description_name = {},", quoted(described));
  write(".description_schema = {},", quoted(described + "() -> str"));
  write(".tables = tables,");
  write(".features = features,");
  write(".cpu = cpu,");
  write(".kernels = kernels,");
  write(".tile = {},", op.tile);
  write(".gpu = {},", op.gpu_kernels.empty() ? "{}" : "gpu");
  write(".gpu_kernels = {},", op.gpu_kernels.empty() ? "{}" : "gpu_kernels");
  write(".gpu_driver = {}}};", quoted(op.gpu_driver));
}

using Texts = std::vector<std::pair<std::string, std::string>>;

Texts headers() {
  return {{"base/status.h", std::string(pool_op::status_text())},
          {"batch/sparse_batch.h", std::string(pool_op::sparse_batch_text())},
          {"device/kernel_types.h", std::string(kernel_types_text())},
          {"device/gpu/cuda_api.h", std::string(pool_op::cuda_api_text())},
          {"device/gpu/embedded_kernel.h", std::string(pool_op::embedded_kernel_text())},
          {"kernels/codegen/pool_prelude.h", std::string(pool_prelude_text())},
          {"pool_op/pool_op.h", std::string(pool_op::pool_op_text())},
          {"kernels/embedding_pool/gpu_blocks.h", std::string(pool_op::gpu_blocks_text())},
          {"kernels/embedding_pool/gpu_pool_arguments.h", std::string(gpu_pool_arguments_text())},
          {"kernels/schedule/task_map.h", std::string(pool_op::task_map_text())}};
}

Texts sources(const std::vector<PoolSource>& kernels, bool registered) {
  Texts texts;
  for (const PoolSource& kernel : kernels) texts.emplace_back(kernel.entry + ".cc", kernel.text);
  texts.emplace_back("pool_op_cpu.cc", pool_op::pool_op_cpu_source_text());
  texts.emplace_back("pool_op_gpu.cc", pool_op::pool_op_gpu_source_text());
  texts.emplace_back("embedded_kernel.cc", pool_op::embedded_kernel_source_text());
  texts.emplace_back("task_map.cc", pool_op::task_map_source_text());
  if (registered)
    texts.emplace_back("torch_registration.cc", pool_op::torch_registration_source_text());
  return texts;
}

}  // namespace

RowStorage rows_of(const PoolOpTable& table) {
  RowStorage rows = RowStorage::of(nullptr, 0, table.dim);
  rows.precision = table.precision;
  rows.stride = table.dim * bytes_of(table.precision);
  return rows;
}

std::string pool_op_schema(const std::string& name) {
  return name +
         "(Tensor[] tables, Tensor[] offsets, Tensor[] rows, Tensor?[]? weights=None) -> Tensor[]";
}

std::vector<PoolFunction> cpu_functions(const PoolOp& op) {
  std::vector<PoolFunction> functions;
  for (const PoolOpFeature& feature : op.features) {
    const CpuFunctions of = functions_of(op, feature);
    functions.insert(functions.end(), {of.chosen, of.one_each, of.bags});
  }
  return functions;
}

std::vector<PoolFunction> gpu_functions(const PoolOp& op) {
  std::vector<PoolFunction> functions;
  for (const PoolOpFeature& feature : op.features) {
    functions.push_back(gpu_function(op, feature, feature.gpu));
    if (only_one_each(functions.back())) functions.push_back(default_gpu_function(op, feature));
  }
  return functions;
}

Result<LibrarySource> pool_op_source(const PoolOp& op, const PoolSourceOptions& options,
                                     const TorchPackage* torch) {
  PoolSourceOptions numbered = options;
  numbered.numbered = true;
  const auto kernels = pool_sources(cpu_functions(op), numbered);
  SourceWriter write;
  write("// Generated by {}: do not edit.", op.made_by);
  write("//");
  write("// recmill::{}: what it was made for.", op.name);
  if (torch != nullptr) write("// Compiled against PyTorch {}.", torch->version);
  write("#include \"pool_op/pool_op.h\"");
  write("");
  write_kernels(write, kernels);
  write("namespace recmill::pool_op {{");
  write("namespace {{");
  write_tables(write, op);
  write_cpu(write, op, kernels);
  if (!op.gpu_kernels.empty()) {
    RECMILL_RETURN_IF_ERROR(write_gpu_features(write, op));
    write_gpu_kernels(write, op);
  }
  write("}}  // namespace");
  write_model(write, op);
  write("}}  // namespace recmill::pool_op");
  LibrarySource source{write.text(), headers(), {"-std=c++20", "-fvisibility=hidden"}};
  if (torch != nullptr) {
    const auto flags = torch->flags();
    source.flags.insert(source.flags.end(), flags.begin(), flags.end());
  }
  source.further = sources(kernels, torch != nullptr);
  return source;
}

}  // namespace recmill::kernels::codegen
