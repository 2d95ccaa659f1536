// SPDX-License-Identifier: Apache-2.0
// From a tuning record to the kernels of a run's store.
#pragma once

#include <string>

#include "base/files.h"
#include "base/status.h"
#include "kernels/tune/record.h"
#include "run/resolved_run.h"
#include "store/tables/rank_tables.h"

namespace recmill::train {

/// Where the run's tuning record is.
std::string tuning_record_path(const RunOptions& options);

/// The record in this file.
Result<kernels::tune::TuningRecord> read_tuning_record(const std::string& path, Files& files);

/// Writes the record, whole or not at all, and its folder.
Status write_record(const kernels::tune::TuningRecord& record, const std::string& path,
                    Files& files);

/// What a record must have been made for to be good for this run on this machine. Fails where a
/// file of [kernels] templates cannot be read.
Result<kernels::tune::TunedFor> tuned_for(const ResolvedRun& run, Files& files = posix_files());

/// The record's schedules for each feature. Fails where the record is foreign or a template of it
/// is unknown, naming both.
Result<store::StoreKernels> kernels_from(const kernels::tune::TuningRecord& record,
                                         const ResolvedRun& run, const std::string& source,
                                         Files& files = posix_files());

/// What becomes of a run without a good record, `why` being the reason: the error, or, where
/// [kernels] on_missing_schedule allows, a warning, and the defaults run.
Status allow_default_schedules(const KernelOptions& options, const Status& why);

/// The schedules that [kernels] asks for: the defaults, or those of the record. Without a good
/// record an error that says why and what to do, or, where [kernels] on_missing_schedule allows, a
/// warning and the defaults.
Result<store::StoreKernels> choose_schedules(const ResolvedRun& run, Files& files);

/// The same, with the generated code that [kernels] asks for.
Result<store::StoreKernels> choose_kernels(const ResolvedRun& run, Files& files);

}  // namespace recmill::train
