// SPDX-License-Identifier: Apache-2.0
// What a run tells as it goes: metrics.jsonl, TensorBoard events, and lines on the screen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/json/json_lines.h"
#include "base/status.h"
#include "run/folder/event_file.h"
#include "run/folder/progress.h"
#include "run/folder/run_folder.h"
#include "step/data/schedule_keeper.h"
#include "step/metrics/metrics.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// Metrics as they are in JSON, in a fixed order, those that the data has no answer for left out.
Json to_json(const metrics::Metrics& metrics);
/// "log loss 0.4521, AUC 0.7931".
std::string brief(const metrics::Metrics& metrics);

/// How far training is.
struct TrainingFigures {
  int64_t iteration = 0;
  int64_t samples = 0;            // of the whole run
  double seconds = 0;             // of training, in this part of a resumed run
  double samples_per_second = 0;  // since the line before
  double learning_rate_scale = 0;
  std::optional<store::FarCounts> far = {};    // of the iteration
  std::optional<hotset::BatchKind> kind = {};  // of its batch, where hot and cold ones are apart
};

class RunLog {
 public:
  /// `total` samples of training in all, 0: unknown. Appends to what an earlier part of the run
  /// wrote, less the lines and events that a run resumed after `iteration` writes again.
  static Result<RunLog> open(Files& files, const RunFolder& folder, Progress::Style style,
                             int64_t total, int64_t iteration);

  /// Metrics of the training window.
  Status training(const TrainingFigures& figures, const metrics::Metrics& window);
  /// Metrics of the evaluation after `iteration`.
  Status evaluation(int64_t iteration, const metrics::Metrics& held_out);
  /// Begins schedule.jsonl, or goes on with it, less the lines of schedules that come again.
  Status open_schedules(Files& files, const std::string& path,
                        const std::optional<ScheduleProgress>& progress);
  /// After open_schedules().
  Status schedule(const FinishedSchedule& schedule);
  /// Of what became of the placement of rows, before `iteration`.
  Status placement(int64_t iteration, const Json& figures);
  Progress& progress() { return *progress_; }
  /// Seconds of training of the parts of a resumed run before this one, as far as their last line
  /// of metrics tells.
  double earlier_seconds() const { return earlier_seconds_; }
  Status close();

 private:
  RunLog(JsonLines lines, EventFile events, std::unique_ptr<Progress> progress,
         double earlier_seconds)
      : lines_(std::move(lines)),
        events_(std::move(events)),
        progress_(std::move(progress)),
        earlier_seconds_(earlier_seconds) {}
  Status write(const std::string& kind, int64_t iteration, const Json& values);

  JsonLines lines_;
  std::optional<JsonLines> schedules_;
  EventFile events_;
  std::unique_ptr<Progress> progress_;
  double earlier_seconds_;
};

}  // namespace recmill::train
