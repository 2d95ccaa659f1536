// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_sources.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kernels/near_rows/gpu_near_rows.h"
#include "kernels/row_copy/gpu_record_copier.h"
#include "kernels/row_copy/gpu_row_copier.h"
#include "kernels/row_copy/gpu_row_copy_arguments.h"
#include "preprocess/run/gpu_chain_arguments.h"
#include "preprocess/run/gpu_preprocess_source.h"
#include "run/gpu/gpu_run.h"
#include "step/gpu/gpu_step_arguments.h"
#include "step/gpu/gpu_step_source.h"
#include "store/gpu/held_tables.h"

namespace recmill::train {
namespace {

using kernels::codegen::GpuPoolSource;
using kernels::codegen::GpuSource;

class Sources {
 public:
  Status add_lookups(const store::GpuStoreSources& of) {
    RECMILL_ASSIGN_OR_RETURN(auto sources,
                             kernels::codegen::fused_gpu_sources(of.lookups, of.fused));
    for (GpuPoolSource& source : sources)
      if (std::ranges::find(made.lookups, source.entry, &GpuPoolSource::entry) ==
          made.lookups.end())
        made.lookups.push_back(std::move(source));
    return {};
  }

  template <class Source>
  void add(std::span<const Source> sources, int threads) {
    for (const GpuSource& source : sources) {
      const auto is_there = [&](const LaunchedSource& other) {
        return other.source.entry == source.entry;
      };
      if (std::ranges::none_of(made.others, is_there)) made.others.push_back({source, threads});
    }
  }
  void add(const GpuSource& source, int threads) {
    add(std::span<const GpuSource>(&source, 1), threads);
  }

  GpuSources made;
};

/// [tables that are held] Of those in two memories; none: there are no such.
std::vector<store::RowsAt> rows_of(const ResolvedRun& run, const store::HeldTables& held) {
  std::vector<store::RowsAt> rows;
  if (run.options.gpu.rows != GpuRowsIn::hot || run.hot_set == nullptr) return rows;
  const auto of_all = store::rows_by_hot_set(*run.hot_set, held.tables);
  for (const int t : held.tables) rows.push_back(of_all[t]);
  return rows;
}

}  // namespace

store::GpuStoreKernels gpu_store_kernels(const ResolvedRun& run, const Schedules& schedules) {
  store::GpuStoreKernels kernels;
  for (const auto& chosen : schedules.pool) kernels.pool.push_back(chosen.schedule);
  kernels.blocks = schedules.blocks;
  kernels.dispatch = run.options.kernels.dispatch;
  kernels.slices = run.slices;
  return kernels;
}

Result<GpuSources> gpu_sources(const ResolvedRun& run, const Schedules& schedules) {
  const store::GpuStoreKernels all = gpu_store_kernels(run, schedules);
  Sources sources;
  for (const store::HeldTables& held : store::held_tables(run.spec, run.ranks)) {
    store::GpuStoreKernels kernels = all;
    kernels.pool.clear();
    if (!all.pool.empty())
      for (const size_t f : held.features) kernels.pool.push_back(all.pool[f]);
    const auto rows = rows_of(run, held);
    const auto of_store = store::gpu_store_sources(store::model_of(held, run.spec), kernels, rows);
    if (std::ranges::any_of(rows, [](const auto& at) { return at.near != nullptr; }))
      sources.add(std::span<const GpuSource>(kernels::gpu_near_rows_sources("Recmill")),
                  kernels::gpu::kNearThreads);
    RECMILL_RETURN_IF_ERROR(sources.add_lookups(of_store));
    sources.add(std::span(of_store.finder), kernels::gpu::kDistinctThreads);
    sources.add(std::span(of_store.updater), kernels::gpu::kUpdateThreads);
  }
  if (run.options.gpu.preprocess)
    sources.add(preprocess::gpu_preprocess_source("Recmill"), preprocess::kChainThreads);
  if (layers_are_on_gpu(run.options))
    sources.add(std::span<const GpuSource>(gpu_step_sources(run.options.optimizer, "Recmill")),
                gpu::kStepThreads);
  const bool cached = run.options.embedding.store == StoreKind::cached;
  if (run.ranks > 1 || cached)
    sources.add(kernels::gpu_row_copy_source("Recmill"), kernels::gpu::kCopyThreads);
  if (cached) sources.add(kernels::gpu_record_copy_source("Recmill"), kernels::gpu::kRecordThreads);
  return std::move(sources.made);
}

}  // namespace recmill::train
