// SPDX-License-Identifier: Apache-2.0
#include "train/make_gpu_store.h"

#include <utility>

#include "base/log.h"
#include "kernels/tune/gpu_tuner.h"
#include "store/gpu_store.h"
#include "train/chosen_kernels.h"
#include "train/gpu_memory.h"
#include "train/gpu_run.h"
#include "train/place_gpu_rows.h"

namespace recmill::train {
namespace {

using kernels::tune::FamilyTuning;
using kernels::tune::TuningRecord;

/// The record's schedules for each feature.
Status take_record(const TuningRecord& record, const ResolvedRun& run, const std::string& source,
                   const Gpu& gpu, store::GpuStoreKernels& chosen) {
  const std::string why =
      kernels::tune::foreign_because(record.of, gpu_tuned_for(run, run.options.device, gpu));
  if (!why.empty()) return Status::Failed(source + ": " + why + "; run `recmill tune` here");
  RECMILL_ASSIGN_OR_RETURN(auto schedules, gpu_schedules(record, run, source));
  chosen.pool = std::move(schedules.pool);
  chosen.blocks = schedules.blocks;
  return {};
}

/// As [kernels] says: the default schedules, or those of the record.
Status choose_schedules(const ResolvedRun& run, const Gpu& gpu, Files& files,
                        store::GpuStoreKernels& chosen) {
  const KernelOptions& options = run.options.kernels;
  if (options.mode == KernelMode::standard) return {};
  const std::string path = tuning_record_path(run.options);
  const auto record = read_tuning_record(path, files);
  const Status status =
      record.ok() ? take_record(*record, run, path, gpu, chosen) : record.status();
  if (status.ok() || options.on_missing_schedule == OnMissingSchedule::error) return status;
  log_warning(status.message() + "; default schedules run instead");
  return {};
}

}  // namespace

kernels::tune::TunedFor gpu_tuned_for(const ResolvedRun& run, DeviceKind device, const Gpu& gpu) {
  kernels::tune::TunedFor of;
  of.machine = gpu.properties().name;
  of.compiler = device == DeviceKind::emulated ? kernels::tune::this_compiler()
                                               : "sm_" + std::to_string(gpu.properties().compute);
  of.workload = run.options.name;
  of.model = run.tuned_model;
  of.threads = 1;
  of.deterministic = run.options.train.deterministic;
  return of;
}

Result<GpuSchedules> gpu_schedules(const TuningRecord& record, const ResolvedRun& run,
                                   const std::string& source) {
  const FamilyTuning* const pool = record.family("embedding_pool");
  if (pool == nullptr) return Status::Failed(source + ": embedding_pool was not tuned");
  const auto chosen = kernels::tune::schedules_of(pool->choice);
  GpuSchedules schedules{std::vector<kernels::Schedule>(run.spec.features.size()),
                         pool->choice.value.blocks};
  for (size_t c = 0; c < chosen.size(); ++c) {
    RECMILL_RETURN_IF_ERROR(kernels::find_gpu_pool_kernel(chosen[c]).status().at(source));
    for (const int64_t f : pool->times.classes[c].features) {
      if (f < 0 || f >= std::ssize(schedules.pool))
        return Status::Failed(source + ": there is no feature number " + std::to_string(f));
      schedules.pool[f] = chosen[c];
    }
  }
  for (size_t f = 0; f < schedules.pool.size(); ++f)
    if (schedules.pool[f].of.empty())
      return Status::Failed(source + ": has no schedule for feature number " + std::to_string(f));
  return schedules;
}

Result<std::unique_ptr<store::EmbeddingStore>> make_gpu_store(const ResolvedRun& run, Pool& pool,
                                                              Files& files) {
  const DeviceKind device = run.options.device;
  RECMILL_ASSIGN_OR_RETURN(auto gpu, open_gpu(run.options));
  store::GpuStoreKernels kernels;
  kernels.dispatch = run.options.kernels.dispatch;
  kernels.shards = run.shards;
  RECMILL_ASSIGN_OR_RETURN(kernels.compile, compiler_for(run, device, *gpu, pool, files));
  RECMILL_RETURN_IF_ERROR(choose_schedules(run, *gpu, files, kernels));
  const int64_t usable = usable_bytes(run.options.gpu, gpu->driver().free_bytes());
  const GpuPlan plan = plan_gpu(run, usable, kernels.pool);
  RECMILL_RETURN_IF_ERROR(check_gpu_memory(run, plan, usable));
  if (run.options.gpu.rows != GpuRowsIn::device)
    log_info("gpu.rows = \"" + std::string(name_of(run.options.gpu.rows)) +
             "\": " + placed_text(run.spec, plan.rows));
  auto store = store::GpuStore::create(run.spec, static_cast<uint64_t>(run.options.train.seed),
                                       std::move(gpu), kernels, pool, plan.rows);
  if (!store.ok()) return store.status().at("device = \"" + std::string(name_of(device)) + "\"");
  return std::unique_ptr<store::EmbeddingStore>(*std::move(store));
}

}  // namespace recmill::train
