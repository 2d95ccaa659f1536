// SPDX-License-Identifier: Apache-2.0
// A whole job: from options to a trained and evaluated model, on the ranks of a world.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json/json.h"
#include "base/status.h"
#include "run/folder/run_folder.h"
#include "run/job_setting.h"
#include "run/options/run_options.h"

namespace recmill::train {

struct TrainingRequest {
  ExistingRun existing = ExistingRun::refuse;
  std::string export_plain;  // folder for export_plain_run(), before training; empty: none
  /// The summary also has "profile": of each rank StageClock::report(), "name", "row_bytes" of its
  /// rows with their state, "peak_bytes" that its process held in memory at most, with a cache
  /// "moved_rows", and where a GPU may read rows of the host's memory "far_lookups", "far_rows".
  bool profile = false;
  std::string order = {};  // file of the inputs' numbers as they are trained; empty: none
  /// preprocess.dense is nowhere written: what its default does is told.
  bool default_dense_ops = false;
  /// Called by rank 0 when the folder is this run's; may be empty.
  std::function<void()> begun = nullptr;
};

/// Trains, with evaluations and checkpoints on the way. Collective over the processes of the world.
/// Returns what summary.json holds; null where rank 0 is not in this process.
Result<Json> run_training(const RunOptions& options, const TrainingRequest& request,
                          const JobSetting& setting);

}  // namespace recmill::train
