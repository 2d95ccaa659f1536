// SPDX-License-Identifier: Apache-2.0
// A run whose rows are stored on GPUs, one for each rank.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "device/gpu/gpu.h"
#include "device/thread_pool.h"
#include "kernels/tune/record.h"
#include "run/gpu/gpu_run.h"
#include "run/gpu/gpu_sources.h"
#include "run/resolved_run.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// What a tuning record must have been made for to be good for this run on this GPU.
kernels::tune::TunedFor gpu_tuned_for(const ResolvedRun& run, DeviceKind device, const Gpu& gpu);

/// The record's. Fails, naming `source`, where a feature has none or one that is no template's.
Result<GpuSchedules> gpu_schedules(const kernels::tune::TuningRecord& record,
                                   const ResolvedRun& run, const std::string& source);
/// The same, where the record is good for this run on a GPU of one of those architectures, such as
/// "sm_90", which need not be here.
Result<GpuSchedules> gpu_schedules(const kernels::tune::TuningRecord& record,
                                   const ResolvedRun& run, const std::string& source,
                                   std::span<const std::string> architectures);
/// The same, where the record is good for this run on this GPU too.
Result<GpuSchedules> gpu_schedules(const kernels::tune::TuningRecord& record,
                                   const ResolvedRun& run, const std::string& source,
                                   const Gpu& gpu);

/// The schedules that [kernels] asks for: the default ones, or what `schedules_of` takes from the
/// run's record. Without a record, or where that fails, as allow_default_schedules().
Result<GpuSchedules> choose_gpu_schedules(
    const ResolvedRun& run, Files& files,
    const std::function<Result<GpuSchedules>(const kernels::tune::TuningRecord& record,
                                             const std::string& source)>& schedules_of);

/// The store of a run with device = "cuda" or "emulated", with the schedules that [kernels] asks
/// for: store::GpuStore, or of several ranks store::TableWiseGpuStore. Fails in one line: as
/// open_gpu(), no compiler of kernels, no tuning record that is good for this run, not enough
/// memory (check_gpu_memory()), windows between hosts. Where gpu.rows has rows in the
/// host's memory, a line of the log says which. Collective.
Result<std::unique_ptr<store::EmbeddingStore>> make_gpu_store(const ResolvedRun& run,
                                                              const RankOnHost& place,
                                                              Communicator& communicator,
                                                              ThreadPool& pool, Files& files);

}  // namespace recmill::train
