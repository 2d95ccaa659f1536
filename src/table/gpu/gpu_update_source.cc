// SPDX-License-Identifier: Apache-2.0
#include "table/gpu/gpu_update_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.h"
#include "kernels/codegen/embedded_texts.h"
#include "kernels/codegen/gpu/device_text.h"
#include "kernels/codegen/source_writer.h"
#include "kernels/row_update/gpu_update_arguments.h"
#include "table/gpu/embedded_texts.h"
#include "table/optimizers/row_formulas.h"

namespace recmill::table {
namespace {

using kernels::codegen::SourceWriter;

std::string device_code() {
  using namespace kernels::codegen;
  return device_text({kernel_types_text(),
                      kernel_text(),
                      std_for_kernels_text(),
                      host_device_text(),
                      philox_text(),
                      bfloat16_text(),
                      clamp_text(),
                      with_l2_text(),
                      rounding_text(),
                      row_optimizer_options_text(),
                      row_step_text(),
                      state_name_text(),
                      sgd_text(),
                      adagrad_text(),
                      rowwise_adagrad_text(),
                      adam_text(),
                      adam_by_row_text(),
                      ftrl_text(),
                      cuda_rows_text(),
                      gpu_distinct_arguments_text(),
                      gpu_update_arguments_text(),
                      cuda_update_text()});
}

const char* formula_type(const GpuUpdateFunction& of) {
  switch (of.optimizer) {
    case OptimizerKind::sgd:
      return "Sgd";
    case OptimizerKind::adagrad:
      return "Adagrad";
    case OptimizerKind::rowwise_adagrad:
      return "RowwiseAdagrad";
    case OptimizerKind::adam:
      return of.correction == BiasCorrection::row ? "AdamByRow" : "Adam";
    case OptimizerKind::ftrl:
      return "Ftrl";
  }
  RECMILL_CHECK(false, "row optimizer of unknown kind");
}

std::string name_of_function(const GpuUpdateFunction& of) {
  const char* const by_row = of.correction == BiasCorrection::row ? ", corrected by row," : "";
  return fmt::format("{}{} of {} {} every {} bytes, {} levels{}", name_of(of.optimizer), by_row,
                     of.dim, name_of(of.precision), of.record_bytes, of.levels,
                     of.two_memories ? ", in two memories" : "");
}

std::string types_and_shared(std::span<const GpuUpdateFunction> functions) {
  SourceWriter write;
  write("using namespace recmill::kernels::gpu;");
  write("");
  for (size_t f = 0; f < functions.size(); ++f) {
    const GpuUpdateFunction& of = functions[f];
    write("// {}", name_of_function(of));
    write("using Update{} = UpdateRows<UpdateShape<{}, {}, {}, {}, {}, recmill::table::{}{}>>;", f,
          of.dim, of.record_bytes, of.element_state, of.levels,
          kernels::codegen::weight_type(of.precision), formula_type(of),
          of.two_memories ? ", true" : "");
  }
  write("");
  for (const char* of : {"Warp", "Block"}) {
    write("union {}Shared {{", of);
    for (size_t f = 0; f < functions.size(); ++f) write("Update{}::{}Shared update_{};", f, of, f);
    write("}};");
    write("");
  }
  write("struct alignas(16) Warp {{");
  write("WarpShared rows;");
  write("recmill::u32 number;");
  write("}};");
  write("");
  write("union Shared {{");
  write("Warp warps[kUpdateThreads / 32];");
  write("BlockShared block;");
  write("}};");
  write("");
  return write.text();
}

// Of an SM: as many as the functions' registers allow without spills.
int blocks_of(std::span<const GpuUpdateFunction> functions) {
  constexpr int kFewLevels = 4;
  const int levels = std::ranges::max(functions, {}, &GpuUpdateFunction::levels).levels;
  return levels <= kFewLevels ? 2 : 1;
}

// One of the functions, by the table's.
template <class Call>
void write_branches(size_t functions, SourceWriter& write, const Call& call) {
  for (size_t f = 0; f < functions; ++f) {
    write("{}if (table.schedule == {}) {{", f == 0 ? "" : "} else ", f);
    write("{}", call(f));
  }
  write("}}");
}

std::string entry_text(const GpuUpdateSource& source) {
  SourceWriter write;
  write("RECMILL_KERNEL({}, {}) {}(const UpdateArguments arguments) {{",
        kernels::gpu::kUpdateThreads, blocks_of(source.functions), source.entry);
  write("RECMILL_SHARED(shared, Shared);");
  write("RECMILL_SHARED(taken, recmill::u32);");
  write("if (arguments.is_listing != 0) {{");
  write("list_rows(arguments);");
  write("return;");
  write("}}");
  write("LongRows long_rows(arguments, taken);");
  write("for (recmill::i64 i = 0; (i = long_rows.take()) >= 0;) {{");
  write("const ListedRow row = arguments.listed.rows[i];");
  write("const UpdateTable& table = arguments.tables[row.table];");
  write_branches(source.functions.size(), write, [](size_t f) {
    return fmt::format(
        "Update{0}::run_long(table, row.row, recmill::opaque_reference(shared.block.update_{0}));",
        f);
  });
  write("}}");
  write("Warp& of_warp = shared.warps[threadIdx.x / 32];");
  write("WarpQueue queue(arguments, of_warp.number);");
  write("for (WarpWork work = {{}}; (work = queue.take()).table >= 0;) {{");
  write("const UpdateTable& table = arguments.tables[work.table];");
  write_branches(source.functions.size(), write, [](size_t f) {
    return fmt::format(
        "Update{0}::run(table, work, queue, recmill::opaque_reference(of_warp.rows.update_{0}));",
        f);
  });
  write("}}");
  write("}}");
  write("RECMILL_EMULATED_ENTRY({}, UpdateArguments)", source.entry);
  return write.text();
}

void write_source(GpuUpdateSource& source, const std::string& made_by) {
  const std::string code = device_code() + "namespace {\n\n" + types_and_shared(source.functions) +
                           "}  // namespace\n\n";
  source.entry = fmt::format("row_update_{:016x}", hash_bytes(code));
  source.text = "// Generated by " + made_by + ": do not edit.\n\n" + code + entry_text(source);
}

}  // namespace

GpuUpdateFunction gpu_update_function(const kernels::RowStorage& rows,
                                      const RowOptimizerOptions& optimizer, int slices,
                                      bool two_memories) {
  const int levels = std::bit_width(static_cast<unsigned>(slices - 1));
  const bool corrects = optimizer.kind == OptimizerKind::adam;
  return {rows.dim,       rows.stride,    rows.element_state,
          rows.precision, optimizer.kind, corrects ? optimizer.correction : BiasCorrection::global,
          levels,         two_memories};
}

std::vector<GpuUpdateSource> gpu_update_sources(std::span<const GpuUpdateFunction> wanted,
                                                const std::string& made_by,
                                                int64_t most_functions) {
  std::vector<GpuUpdateFunction> functions(wanted.begin(), wanted.end());
  std::ranges::sort(functions);
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  std::vector<GpuUpdateSource> made;
  for (size_t begin = 0; begin < functions.size(); begin += static_cast<size_t>(most_functions)) {
    GpuUpdateSource& source = made.emplace_back();
    const size_t end = std::min(begin + static_cast<size_t>(most_functions), functions.size());
    source.functions.assign(functions.begin() + static_cast<int64_t>(begin),
                            functions.begin() + static_cast<int64_t>(end));
    write_source(source, made_by);
  }
  return made;
}

std::vector<std::byte> formula_bytes(const RowOptimizerOptions& options, const RowStep& step) {
  std::vector<std::byte> bytes(sizeof(kernels::gpu::UpdateTable::formula));
  with_formula(options, step, [&](const auto& formula) {
    static_assert(sizeof formula <= sizeof(kernels::gpu::UpdateTable::formula));
    std::memcpy(bytes.data(), &formula, sizeof formula);
  });
  return bytes;
}

}  // namespace recmill::table
