// SPDX-License-Identifier: Apache-2.0
#include "tuning/gpu_tuning.h"

#include <utility>

#include "base/log.h"
#include "base/made_folders.h"
#include "run/folder/progress.h"
#include "run/gpu/gpu_lookups.h"
#include "run/rank.h"
#include "run/schedules.h"

namespace recmill::train {
namespace {

using kernels::tune::GpuTunerOptions;
using kernels::tune::TuningRecord;

constexpr int64_t kEmulatedBatches = 2;  // that tuning sees: the emulator is slow

}  // namespace

Result<TuningRecord> tune_for_gpu(const ResolvedRun& run, const TuningRequest& request,
                                  Files& files) {
  const DeviceKind device = run.options.device;
  const std::string path = tuning_record_path(run.options);
  const auto pool = make_pool(run.threads);
  BatchesRequest batches{.seed = static_cast<uint64_t>(request.seed)};
  if (device == DeviceKind::emulated) batches.least = batches.most = kEmulatedBatches;
  RECMILL_ASSIGN_OR_RETURN(const auto lookups, GpuLookups::make(run, batches, *pool, files));
  // Nothing is measured for a record that cannot be written.
  RECMILL_ASSIGN_OR_RETURN(const auto made, MadeFolders::make_for(files, path));
  RECMILL_RETURN_IF_ERROR(AtomicFile::create(files, path).status());
  GpuTunerOptions options = gpu_tuner_options(device, lookups->gpu());
  if (device == DeviceKind::cuda) options.rounds = request.rounds;
  TuningRecord record;
  RECMILL_ASSIGN_OR_RETURN(record.of, tuned_for(run, {.gpu = lookups->gpu().properties()}, files));
  record.of.commit = request.commit;
  Progress progress(request.progress, "tuning", "%", 100);
  const std::atomic<bool> never{false};
  RECMILL_ASSIGN_OR_RETURN(
      auto family, tune_on_gpu(
                       lookups->subject(), options,
                       [&](double done) { progress.show(static_cast<int64_t>(done * 100), ""); },
                       request.interrupted != nullptr ? *request.interrupted : never));
  for (const auto& value : family.times.values)
    for (const auto& of : value.classes)
      for (const auto& candidate : of.candidates)
        if (!candidate.refused.empty()) log_warning_once(candidate.refused);
  record.families.push_back(std::move(family));
  RECMILL_RETURN_IF_ERROR(write_record(record, path, files));
  return record;
}

}  // namespace recmill::train
