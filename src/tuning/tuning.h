// SPDX-License-Identifier: Apache-2.0
// Tunes a configuration's embedding kernels on its own tables and data.
#pragma once

#include <atomic>
#include <string>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "kernels/tune/record.h"
#include "run/folder/progress.h"
#include "run/resolved_run.h"

namespace recmill::train {

struct TuningRequest {
  double budget_seconds = 0.0;   // of all, data too; 0: as long as it takes
  int64_t rounds = 40;           // visits of each candidate that stays among the best
  int64_t finalist_rounds = 24;  // of the best of them in the run of all features
  int64_t seed = 1000;           // of the batches that are tuned on
  std::string commit;            // of this program
  bool if_drifted = false;       // only what drifted from the record that is there
  Progress::Style progress = Progress::Style::silent;
  const std::atomic<bool>* interrupted = nullptr;
};

/// Measures, chooses, measures the winners again, and gives the record. With `if_drifted` first
/// compares the data with what the record was tuned on: classes that moved are tuned again, others
/// keep their times; a record from which nothing moved is given as it is. Fails where that record
/// is missing or foreign. What is measured is kept in "PATH.partial" as it comes, PATH being the
/// record's: a run that was broken off goes on from there, if that is of the same model, machine,
/// compiler, threads, templates, batches and rounds.
Result<kernels::tune::TuningRecord> tune(const ResolvedRun& run, const TuningRequest& request,
                                         Files& files);

/// The record that follows from the times in `record`: the same times, the same bytes.
Result<kernels::tune::TuningRecord> replay(kernels::tune::TuningRecord record);

/// One line a figure: tables, classes, values, predicted and measured times; null where a time was
/// not measured.
Json summary_of(const kernels::tune::TuningRecord& record);

}  // namespace recmill::train
