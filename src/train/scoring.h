// SPDX-License-Identifier: Apache-2.0
// Evaluation and prediction from a checkpoint.
#pragma once

#include <string>

#include "base/json_lines.h"
#include "base/status.h"
#include "train/job.h"

namespace recmill::train {

struct ScoringRequest {
  std::string checkpoint;   // empty: the newest whole one of the run's folder
  std::string predictions;  // Parquet file to write; empty: none
};

/// Evaluates a checkpoint on the evaluation rows, by the world's own number of ranks whatever the
/// run trained with; writes predictions if asked. Collective over the processes of the world.
/// Returns the metrics; null where rank 0 is not in this process.
Result<Json> run_scoring(const RunOptions& options, const ScoringRequest& request,
                         const JobSetting& setting);

}  // namespace recmill::train
