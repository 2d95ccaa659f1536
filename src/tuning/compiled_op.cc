// SPDX-License-Identifier: Apache-2.0
#include "tuning/compiled_op.h"

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "device/gpu/gpu_properties.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "kernels/codegen/group_functions.h"
#include "kernels/embedding_pool/gpu_templates.h"
#include "model/torch_library.h"
#include "pool_op/check_pool_op.h"
#include "run/chosen_kernels.h"
#include "run/generated_code.h"
#include "run/gpu/gpu_run.h"
#include "run/rank.h"

namespace recmill::train {
namespace {

using kernels::codegen::PoolOp;
using kernels::codegen::PoolOpFeature;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

Result<std::string> name_of_op(const ResolvedRun& run, const CompiledOpRequest& request) {
  std::string name = request.name;
  if (name.empty()) {
    name = run.options.name;
    std::ranges::replace_if(
        name, [](char c) { return !is_word(c); }, '_');
  }
  const bool good = std::ranges::all_of(name, is_word) && !name.empty() &&
                    std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  if (!good)
    return Status::BadRequest("--name " + name +
                              ": must be letters, digits and underscores, no "
                              "digit first");
  return name;
}

/// What recmill::NAME_description() tells: in which order tables and features are given.
std::string description_of(const ResolvedRun& run) {
  Json tables = Json::array(), features = Json::array();
  for (const TableSpec& table : run.spec.tables)
    tables.push_back({{"name", table.name},
                      {"rows", table.rows},
                      {"dim", table.dim},
                      {"dtype", recmill::name_of(table.precision)}});
  for (const FeatureSpec& feature : run.spec.features)
    features.push_back({{"name", feature.name},
                        {"table", run.spec.tables[feature.table].name},
                        {"pooling", recmill::name_of(feature.pooling)},
                        {"weighted", feature.weighted}});
  return Json{{"tables", tables}, {"features", features}}.dump();
}

/// Features whose schedule only the program itself has: the default stands in for it.
void tell_without_generated_form(const std::vector<PoolOpFeature>& features) {
  for (const PoolOpFeature& feature : features) {
    if (feature.kernel.of == nullptr ||
        kernels::codegen::has_generated_form(feature.kernel.of->name))
      continue;
    log_warning("feature '" + feature.name + "': template '" + feature.kernel.of->name +
                "' has no generated form; the default schedule is compiled");
  }
}

/// Tables and features, each with the schedules that nobody tuned.
Result<PoolOp> op_of(const ResolvedRun& run, const CompiledOpRequest& request) {
  PoolOp op;
  if (run.spec.features.empty()) return Status::BadRequest("features: there are none to look up");
  RECMILL_ASSIGN_OR_RETURN(op.name, name_of_op(run, request));
  op.made_by = "Recmill for " + run.options.name;
  op.description = description_of(run);
  for (const TableSpec& table : run.spec.tables)
    op.tables.push_back({table.name, table.dim, table.precision});
  for (const FeatureSpec& of : run.spec.features) {
    PoolOpFeature& feature = op.features.emplace_back();
    feature.name = of.name;
    feature.table = static_cast<int32_t>(of.table);
    feature.pooling = of.pooling;
    feature.weighted = of.weighted;
    feature.gpu = kernels::default_gpu_pool_schedule(of.pooling, rows_of(op.tables[of.table]));
  }
  return op;
}

/// The schedules that the run would use, on the CPU or on a GPU. Returns how many blocks of an SM
/// they were tuned to; 0: any number.
Result<int64_t> choose(const ResolvedRun& run, const CompiledOpRequest& request, Files& files,
                       PoolOp& op) {
  SchedulePlace place;
  const bool for_gpu = run.options.device != DeviceKind::cpu;  // what the run's record is for
  if (for_gpu) place.architectures = request.architectures;
  RECMILL_ASSIGN_OR_RETURN(const TunedSchedules chosen, choose_schedules(run, place, files));
  const Schedules& schedules = chosen.schedules;
  if (for_gpu) {
    for (size_t f = 0; f < schedules.pool.size(); ++f)
      op.features[f].gpu = schedules.pool[f].schedule;
    return schedules.blocks;
  }
  RECMILL_ASSIGN_OR_RETURN(const auto kernels, kernels_of(schedules, run, files));
  op.tile = kernels.tile;
  for (size_t f = 0; f < kernels.pool.size(); ++f) op.features[f].kernel = kernels.pool[f];
  tell_without_generated_form(op.features);
  return 0;
}

/// The fused kernels for GPUs and their binaries. `blocks`: of an SM, exactly; 0: any
/// number.
Status add_gpu_kernels(const ResolvedRun& run, const CompiledOpRequest& request, int64_t blocks,
                       const std::string& cache_folder, Files& files, PoolOp& op,
                       CompiledOp& made) {
  std::vector<GpuProperties> gpus;
  for (const std::string& architecture : request.architectures) {
    RECMILL_ASSIGN_OR_RETURN(gpus.emplace_back(), gpu_of_architecture(architecture));
  }
  const auto functions = gpu_functions(op);
  made.gpu_functions = std::ssize(kernels::codegen::distinct_functions(functions));
  RECMILL_ASSIGN_OR_RETURN(auto sources, kernels::codegen::gpu_pool_sources(
                                             functions, {.made_by = "Recmill",
                                                         .dispatch = run.options.kernels.dispatch,
                                                         .blocks = std::max<int64_t>(1, blocks)}));
  RECMILL_ASSIGN_OR_RETURN(auto cache, kernels::codegen::CubinCache::open(cache_folder, files));
  const auto pool = make_pool(run.threads);
  const std::vector<kernels::codegen::GpuSource> texts(sources.begin(), sources.end());
  for (auto& source : sources) op.gpu_kernels.push_back({std::move(source), {}});
  for (size_t a = 0; a < gpus.size(); ++a) {
    const std::string& architecture = request.architectures[a];
    RECMILL_ASSIGN_OR_RETURN(const auto codes, cache.load(texts, architecture, *pool));
    for (size_t k = 0; k < codes.size(); ++k) {
      const auto cubin = codes[k].code.cubin;
      const int64_t unused = blocks > 0 ? shared_that_leaves(gpus[a], codes[k].resources,
                                                             kernels::gpu::kBlockThreads, blocks)
                                        : 0;
      op.gpu_kernels[k].binaries.push_back({architecture, {cubin.begin(), cubin.end()}, unused});
    }
  }
  made.compiled += cache.compilations();
  return {};
}

}  // namespace

Result<CompiledOp> compile_op(const ResolvedRun& run, const CompiledOpRequest& request,
                              Files& files) {
  const Stopwatch watch;
  RECMILL_ASSIGN_OR_RETURN(const auto torch, kernels::codegen::find_torch(request.python, files));
  RECMILL_ASSIGN_OR_RETURN(PoolOp op, op_of(run, request));
  RECMILL_ASSIGN_OR_RETURN(const int64_t blocks, choose(run, request, files, op));
  RECMILL_ASSIGN_OR_RETURN(auto cache, library_cache(run.options.kernels, files));
  CompiledOp made;
  made.name = op.name;
  made.torch = torch.version;
  made.tables = std::ssize(op.tables);
  made.features = std::ssize(op.features);
  if (!request.architectures.empty())
    RECMILL_RETURN_IF_ERROR(add_gpu_kernels(run, request, blocks, cache.folder(), files, op, made));
  const kernels::codegen::PoolSourceOptions options{.made_by = op.made_by,
                                                    .dispatch = run.options.kernels.dispatch,
                                                    .lanes = kernels::codegen::vector_lanes()};
  made.functions = std::ssize(kernels::codegen::distinct_functions(cpu_functions(op)));
  RECMILL_ASSIGN_OR_RETURN(const auto source, pool_op_source(op, options, &torch));
  RECMILL_RETURN_IF_ERROR(model::torch_library().status());  // which the operator finds there
  RECMILL_ASSIGN_OR_RETURN(const auto libraries, cache.load({&source, 1}));
  RECMILL_RETURN_IF_ERROR(check_pool_op(op, *libraries.front()));
  made.library = libraries.front()->path();
  made.compiled += cache.compilations();
  made.seconds = watch.seconds();
  return made;
}

Json summary_of(const CompiledOp& op) {
  return {{"operator", "recmill::" + op.name},
          {"torch", op.torch},
          {"tables", op.tables},
          {"features", op.features},
          {"functions", op.functions},
          {"gpu_functions", op.gpu_functions},
          {"compiled", op.compiled},
          {"seconds", op.seconds}};
}

}  // namespace recmill::train
