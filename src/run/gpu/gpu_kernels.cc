// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_kernels.h"

#include <algorithm>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "kernels/tune/gpu_tuner.h"
#include "run/generated_code.h"
#include "run/gpu/gpu_sources.h"
#include "run/rank.h"
#include "run/schedules.h"
#include "run/tuning_data.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

using kernels::FeatureShape;
using kernels::RowStorage;
using kernels::codegen::CubinCache;
using kernels::codegen::GpuPoolSource;
using kernels::codegen::GpuSource;
using kernels::codegen::PoolFunction;

constexpr int64_t kAtATime = 4;  // sources, between two looks at whether it is to go on

struct Feature {
  FeatureShape shape;
  RowStorage rows;  // their layout
  bool two_memories = false;
};

Result<std::vector<Feature>> features_of(const ResolvedRun& run, uint64_t seed, ThreadPool& pool,
                                         Files& files) {
  BatchesRequest request;
  request.seed = seed;
  RECMILL_ASSIGN_OR_RETURN(const auto batches, read_batches(run, request, pool, files));
  std::vector<store::RowsAt> places;
  if (run.options.gpu.rows == GpuRowsIn::hot && run.hot_set != nullptr)
    places = store::rows_by_hot_set(*run.hot_set);
  std::vector<Feature> features;
  for (size_t f = 0; f < run.spec.features.size(); ++f) {
    const FeatureSpec& spec = run.spec.features[f];
    const TableSpec& table = run.spec.tables[spec.table];
    kernels::tune::BagCounter bags;
    for (const SparseBatch& batch : batches) bags.add(batch.features[f].view(batch.samples));
    const auto rows = table::EmbeddingTable::layout(table, table::RowShare(table.rows, 0, 1));
    features.push_back(
        {{table.rows, table.dim, table.precision, spec.pooling, spec.weighted, bags.stats()},
         rows,
         !places.empty() && places[spec.table].near != nullptr});
  }
  return features;
}

/// Of all features, what is tried of those that differ.
std::vector<std::vector<PoolFunction>> distinct_candidates(std::span<const Feature> features,
                                                           bool deterministic) {
  std::vector<std::vector<PoolFunction>> distinct;
  for (const Feature& feature : features) {
    auto functions =
        kernels::tune::gpu_tuning_functions(feature.shape, feature.rows, deterministic);
    for (PoolFunction& function : functions) function.two_memories = feature.two_memories;
    if (std::ranges::find(distinct, functions) == distinct.end())
      distinct.push_back(std::move(functions));
  }
  return distinct;
}

/// A source, and what it is for.
struct Wanted : LaunchedSource {
  int64_t schedules = 0;
  int64_t blocks = 0;  // of an SM that it is launched for; 0: any number
};

void add(std::span<const GpuPoolSource> sources, int64_t blocks, std::vector<Wanted>& wanted) {
  for (const GpuPoolSource& source : sources)
    wanted.push_back({{source, kernels::gpu::kBlockThreads}, std::ssize(source.functions), blocks});
}

/// The default schedules as tuning has them beside others, of all features on one GPU, where ranks
/// load something else.
Status add_untuned(const ResolvedRun& run, const GpuSources& loaded, std::vector<Wanted>& wanted) {
  ResolvedRun alone = run;
  alone.ranks = 1;
  alone.options.kernels.dispatch = kernels::codegen::Dispatch::branches;
  RECMILL_ASSIGN_OR_RETURN(const auto untuned, gpu_sources(alone, {}));
  if (untuned.lookups != loaded.lookups) add(untuned.lookups, 0, wanted);
  return {};
}

/// Those that ranks would use on such a GPU. A record that is not good for it says so in the log:
/// tuning there makes another.
Result<Schedules> schedules_for(const ResolvedRun& run, const std::string& architecture,
                                Files& files) {
  const std::string path = tuning_record_path(run.options);
  if (run.options.kernels.mode == KernelMode::standard || !files.exists(path)) return Schedules{};
  RECMILL_ASSIGN_OR_RETURN(const auto record, read_tuning_record(path, files));
  auto schedules = schedules_from(record, run, {.architectures = {{architecture}}}, path, files);
  if (schedules.ok()) return schedules;
  log_warning(schedules.status().message() + "; lookups have the default schedules");
  return Schedules{};
}

Result<std::vector<GpuKernelReport>> compile(std::span<const Wanted> wanted,
                                             const GpuProperties& gpu,
                                             const GpuKernelsRequest& request, CubinCache& cache,
                                             ThreadPool& pool, Progress& progress) {
  std::vector<GpuKernelReport> reports;
  for (size_t begin = 0; begin < wanted.size(); begin += kAtATime) {
    if (request.interrupted != nullptr && *request.interrupted)
      return Status::Failed("interrupted; what was compiled is kept");
    const auto some = wanted.subspan(begin, std::min<size_t>(kAtATime, wanted.size() - begin));
    std::vector<GpuSource> sources;
    for (const Wanted& of : some) sources.push_back(of.source);
    RECMILL_ASSIGN_OR_RETURN(const auto codes, cache.load(sources, request.architecture, pool));
    for (size_t s = 0; s < some.size(); ++s) {
      const Wanted& of = some[s];
      const KernelResources& takes = codes[s].resources;
      const int64_t unused =
          of.blocks > 0 ? shared_that_leaves(gpu, takes, of.threads, of.blocks) : 0;
      reports.push_back({takes, codes[s].spilled, of.threads,
                         blocks_per_sm(gpu, takes, of.threads, unused), of.schedules});
    }
    progress.show(static_cast<int64_t>(begin + some.size()), "");
  }
  return reports;
}

Json to_json(const GpuKernelReport& kernel, const GpuProperties& gpu) {
  Json json = {{"kernel", kernel.resources.name},
               {"registers", kernel.resources.registers},
               {"stack", kernel.resources.stack},
               {"spilled", kernel.spilled},
               {"shared", kernel.resources.shared},
               {"blocks", kernel.blocks},
               {"occupancy", occupancy_of(gpu, kernel.blocks, kernel.threads)}};
  if (kernel.schedules > 0) json["schedules"] = kernel.schedules;
  return json;
}

Json to_json(const GpuKernelsReport::Effort& effort) {
  return {{"compiled", effort.compiled}, {"seconds", effort.seconds}};
}

/// Schedules of all kernels, those of several once.
int64_t distinct_schedules(std::span<const GpuPoolSource> sources) {
  std::vector<PoolFunction> functions;
  for (const GpuPoolSource& source : sources)
    for (const PoolFunction& function : source.functions)
      if (std::ranges::find(functions, function) == functions.end()) functions.push_back(function);
  return std::ssize(functions);
}

}  // namespace

Result<GpuKernelsReport> compile_gpu_kernels(const ResolvedRun& run,
                                             const GpuKernelsRequest& request, Files& files) {
  GpuKernelsReport report;
  RECMILL_ASSIGN_OR_RETURN(report.gpu, gpu_of_architecture(request.architecture));
  const auto pool = make_pool(run.threads);
  RECMILL_ASSIGN_OR_RETURN(const auto features, features_of(run, request.seed, *pool, files));
  const auto candidates = distinct_candidates(features, run.options.train.deterministic);
  RECMILL_ASSIGN_OR_RETURN(const auto schedules, schedules_for(run, request.architecture, files));
  if (!schedules.pool.empty()) report.record = tuning_record_path(run.options);
  RECMILL_ASSIGN_OR_RETURN(const GpuSources loaded, gpu_sources(run, schedules));
  report.features = std::ssize(features);
  report.schedules = distinct_schedules(loaded.lookups);
  report.shapes = std::ssize(candidates);
  std::vector<Wanted> fused, beside, tried;
  add(loaded.lookups, schedules.blocks, fused);
  for (const LaunchedSource& other : loaded.others) beside.push_back({other});
  for (const auto& of_shape : candidates) {
    report.candidates += std::ssize(of_shape) - 1;  // without the default schedule
    for (const int64_t blocks : kernels::tune::gpu_occupancies(report.gpu)) {
      RECMILL_ASSIGN_OR_RETURN(
          const auto sources,
          kernels::codegen::gpu_pool_sources(of_shape, kernels::tune::gpu_tuning_options(blocks)));
      add(sources, blocks, tried);
    }
  }
  RECMILL_RETURN_IF_ERROR(add_untuned(run, loaded, tried));
  RECMILL_ASSIGN_OR_RETURN(const auto libraries, library_cache(run.options.kernels, files));
  RECMILL_ASSIGN_OR_RETURN(auto cache, CubinCache::open(libraries.folder(), files));
  const Stopwatch watch;
  Progress progress(request.progress, "compile", "kernels",
                    std::ssize(fused) + std::ssize(beside) + std::ssize(tried));
  const auto compile_some = [&](std::span<const Wanted> wanted) {
    return compile(wanted, report.gpu, request, cache, *pool, progress);
  };
  RECMILL_ASSIGN_OR_RETURN(report.fused, compile_some(fused));
  RECMILL_ASSIGN_OR_RETURN(report.beside, compile_some(beside));
  report.of_training = {cache.compilations(), watch.seconds()};
  RECMILL_ASSIGN_OR_RETURN(report.candidate_kernels, compile_some(tried));
  report.in_all = {cache.compilations(), watch.seconds()};
  return report;
}

Json summary_of(const GpuKernelsReport& report) {
  Json json = {{"architecture", report.gpu.name},
               {"schedules", report.record.empty() ? "default" : report.record},
               {"features", report.features},
               {"distinct_schedules", report.schedules},
               {"fused", Json::array()},
               {"beside", Json::array()}};
  for (const GpuKernelReport& kernel : report.fused)
    json["fused"].push_back(to_json(kernel, report.gpu));
  for (const GpuKernelReport& kernel : report.beside)
    json["beside"].push_back(to_json(kernel, report.gpu));
  json["training"] = to_json(report.of_training);
  json["shapes"] = report.shapes;
  json["candidates"] = report.candidates;
  json["candidate_kernels"] = Json::array();
  for (const GpuKernelReport& kernel : report.candidate_kernels)
    json["candidate_kernels"].push_back(to_json(kernel, report.gpu));
  json["compiled"] = report.in_all.compiled;
  json["seconds"] = report.in_all.seconds;
  return json;
}

}  // namespace recmill::train
