// SPDX-License-Identifier: Apache-2.0
// The one road from a tuning record to a run's schedules, on CPUs and on GPUs. Training, scoring,
// verification, benchmarks and compiled operators all take it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "device/gpu/gpu_properties.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "kernels/tune/record.h"
#include "run/resolved_run.h"
#include "table/table_update.h"

namespace recmill::train {

/// Where the run's tuning record is.
std::string tuning_record_path(const RunOptions& options);

/// The record in this file.
Result<kernels::tune::TuningRecord> read_tuning_record(const std::string& path, Files& files);

/// Writes the record, whole or not at all, and its folder.
Status write_record(const kernels::tune::TuningRecord& record, const std::string& path,
                    Files& files);

/// Where schedules run: where neither is given, on this machine's processor.
struct SchedulePlace {
  std::optional<GpuProperties> gpu = {};  // of run.options.device
  /// GPUs such as "sm_90", any of which a record may be for; none of them need be here.
  std::optional<std::vector<std::string>> architectures = {};

  bool is_gpu() const { return gpu || architectures; }
};

/// What a record that is made for this run and place says that it is for. `place` has no
/// architectures. Fails where a file of [kernels] templates cannot be read.
Result<kernels::tune::TunedFor> tuned_for(const ResolvedRun& run, const SchedulePlace& place,
                                          Files& files = posix_files());

/// A run's schedules, whatever they run on: plain values, each checked.
struct Schedules {
  /// [features]; empty: the default ones, which a feature has, too, whose schedule has no template.
  std::vector<kernels::tune::ChosenSchedule> pool = {};
  int64_t tile = kernels::kWholeFeature;  // on a CPU: samples of a feature in one task, at most
  int64_t blocks = 0;                     // on a GPU: of an SM, that they are for; 0: any number
  /// [tables], on a CPU; empty, and without a template, as `pool`.
  std::vector<kernels::Schedule> row_update = {};
  int64_t update_floats = table::kTaskFloats;  // table::TableUpdater's task_floats
  bool operator==(const Schedules&) const = default;
};

/// The record's. Fails in one line that begins with `source` where the record is for another model,
/// machine, compiler or other templates, and where a schedule's template is unknown, adds
/// in another order than train.deterministic admits, or is for what the run does not have; on a GPU
/// where a feature has none, too.
Result<Schedules> schedules_from(const kernels::tune::TuningRecord& record, const ResolvedRun& run,
                                 const SchedulePlace& place, const std::string& source,
                                 Files& files = posix_files());

struct TunedSchedules {
  Schedules schedules;
  std::optional<kernels::tune::TuningRecord> record = {};  // that they are of; none: the defaults
};

/// The schedules of the run's record, or, with [kernels] mode = "standard", the default ones. Fails
/// as read_tuning_record() and schedules_from().
Result<TunedSchedules> tuned_schedules(const ResolvedRun& run, const SchedulePlace& place,
                                       Files& files);

/// The same; where there is no good record and [kernels] on_missing_schedule allows it, a warning
/// says why, and these are the default ones.
Result<TunedSchedules> choose_schedules(const ResolvedRun& run, const SchedulePlace& place,
                                        Files& files);

}  // namespace recmill::train
