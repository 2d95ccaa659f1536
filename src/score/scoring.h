// SPDX-License-Identifier: Apache-2.0
// Evaluation and prediction from a checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "run/job_setting.h"
#include "score/predict_requests.h"

namespace recmill::train {

struct ScoringRequest {
  /// A checkpoint's folder, or "best" or "newest": that of the run's folder; empty: the best where
  /// the run keeps that, else the newest.
  std::string checkpoint;
  std::string predictions;  // file to write, by its ending (write_columns()); empty: none
  /// Files or patterns whose rows are scored, all of them, in place of the evaluation rows.
  std::vector<std::string> rows = {};
  /// The column whose cells tell rows of the predictions apart; empty: their files and numbers do.
  std::string key = {};
  /// Rows are requests of train.eval_batch_size samples, which are answered and timed
  /// (predict_requests()); all are read and preprocessed, and held, before.
  std::optional<RequestOptions> latency = std::nullopt;
};

/// Evaluates a checkpoint on the evaluation rows, or those of `request`, with train.ranks ranks
/// where the world has so many and else as many as it gives; writes predictions if asked. Rows
/// are stored as the store says, without their state: in the placed store as placement.plan has
/// them, or as its planner puts them for lookups alone. Collective over the processes of the world.
/// Returns the metrics, and what predict_requests() reports as "latency"; null where rank 0 is not
/// in this process.
Result<Json> run_scoring(const RunOptions& options, const ScoringRequest& request,
                         const JobSetting& setting);

}  // namespace recmill::train
