// SPDX-License-Identifier: Apache-2.0
#include "train/chosen_kernels.h"

#include "base/log.h"
#include "device/processor.h"

namespace recmill::train {
namespace {

using kernels::tune::FamilyTuning;
using kernels::tune::TuningRecord;

}  // namespace

std::string tuning_record_path(const RunOptions& options) {
  return options.kernels.record.empty() ? "tuned/" + options.name + ".json"
                                        : options.kernels.record;
}

Result<TuningRecord> read_tuning_record(const std::string& path, Files& files) {
  if (!files.exists(path))
    return Status::Failed(path + ": no such tuning record; run `recmill tune` first");
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  return kernels::tune::parse_record(text, path);
}

kernels::tune::TunedFor tuned_for(const ResolvedRun& run) {
  return {this_processor().name,
          kernels::tune::this_compiler(),
          "",
          run.options.name,
          kernels::tune::model_digest(run.spec),
          run.threads,
          run.options.train.deterministic};
}

Result<store::StoreKernels> kernels_from(const TuningRecord& record, const ResolvedRun& run,
                                         const std::string& source) {
  const std::string why = kernels::tune::foreign_because(record.of, tuned_for(run));
  if (!why.empty()) return Status::Failed(source + ": " + why + "; run `recmill tune` here");
  store::StoreKernels chosen;
  const FamilyTuning* pool = record.family("embedding_pool");
  if (pool == nullptr) return chosen;
  chosen.pool.resize(run.spec.features.size());
  chosen.tile = pool->choice.value.tile;
  for (size_t c = 0; c < pool->choice.schedules.size(); ++c) {
    const auto& [schedule, per_lookup, per_sample] = pool->choice.schedules[c];
    auto kernel = kernels::find_pool_kernel(schedule);
    if (!kernel.ok()) return Status::Failed(source + ": " + kernel.status().message());
    kernel->per_lookup = per_lookup;
    kernel->per_sample = per_sample;
    for (int64_t f : pool->times.classes[c].features) {
      if (f < 0 || f >= static_cast<int64_t>(chosen.pool.size()))
        return Status::Failed(source + ": there is no feature " + std::to_string(f));
      chosen.pool[f] = *kernel;
    }
  }
  return chosen;
}

Result<store::StoreKernels> choose_kernels(const ResolvedRun& run, Files& files) {
  const KernelOptions& options = run.options.kernels;
  if (options.mode == KernelMode::standard) return store::StoreKernels{};
  const std::string path = tuning_record_path(run.options);
  const auto record = read_tuning_record(path, files);
  auto chosen = record.ok() ? kernels_from(*record, run, path) : record.status();
  if (chosen.ok() || options.on_missing_schedule == OnMissingSchedule::error) return chosen;
  log_warning(chosen.status().message() + "; default schedules run instead");
  return store::StoreKernels{};
}

}  // namespace recmill::train
