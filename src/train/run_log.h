// SPDX-License-Identifier: Apache-2.0
// What a run tells as it goes: metrics.jsonl, TensorBoard events, and lines on the screen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json_lines.h"
#include "train/event_file.h"
#include "train/metrics/metrics.h"
#include "train/progress.h"
#include "train/run_folder.h"

namespace recmill::train {

/// Metrics as they stand in JSON, in a fixed order, those that the data has no answer for left out.
Json to_json(const metrics::Metrics& metrics);
/// "log loss 0.4521, AUC 0.7931".
std::string brief(const metrics::Metrics& metrics);

class RunLog {
 public:
  /// `total` samples of training in all, 0: unknown. Appends to what an earlier part of the run
  /// wrote, less the lines of metrics.jsonl that a run resumed after `iteration` writes again.
  static Result<RunLog> open(Files& files, const RunFolder& folder, Progress::Style style,
                             int64_t total, int64_t iteration);

  /// Metrics of the training window after `iteration`.
  Status training(int64_t iteration, int64_t samples, double samples_per_second,
                  double learning_rate_scale, const metrics::Metrics& window);
  /// Metrics of the evaluation after `iteration`.
  Status evaluation(int64_t iteration, const metrics::Metrics& held_out);
  Progress& progress() { return *progress_; }
  Status close();

 private:
  RunLog(JsonLines lines, EventFile events, std::unique_ptr<Progress> progress)
      : lines_(std::move(lines)), events_(std::move(events)), progress_(std::move(progress)) {}
  Status write(const std::string& kind, int64_t iteration, const Json& values);

  JsonLines lines_;
  EventFile events_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace recmill::train
