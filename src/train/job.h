// SPDX-License-Identifier: Apache-2.0
// A whole job: from options to a trained and evaluated model, on the ranks of this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json_lines.h"
#include "base/status.h"
#include "train/progress.h"
#include "train/run_folder.h"
#include "train/run_options.h"

namespace recmill::train {

/// What a job is given besides its options.
struct JobSetting {
  Files& files;
  std::string commit;  // of this build, for the summary
  Progress::Style progress = Progress::Style::silent;
  const std::atomic<bool>* interrupted =
      nullptr;  // becomes true: finish the iteration, save, leave
};

struct TrainingRequest {
  std::string config;  // the configuration as resolved, for the run folder
  ExistingRun existing = ExistingRun::refuse;
  std::string export_plain;  // folder for export_plain_run(), before training; empty: none
};

/// Trains, with evaluations and checkpoints on the way. Returns what summary.json holds.
Result<Json> run_training(const RunOptions& options, const TrainingRequest& request,
                          const JobSetting& setting);

}  // namespace recmill::train
