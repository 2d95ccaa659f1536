// SPDX-License-Identifier: Apache-2.0
// One rank's training from the first batch to the last: steps, evaluations, metrics, checkpoints.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "comm/communicator.h"
#include "run/checkpoint/checkpoint_saver.h"
#include "run/folder/run_log.h"
#include "run/hotset/trained_order.h"
#include "run/lookahead/row_commits.h"
#include "run/rank.h"
#include "step/loop_hook.h"
#include "step/loop_state.h"
#include "step/metrics/sample_window.h"
#include "step/scores.h"

namespace recmill::train {

enum class Ending { finished, early_stop, interrupted };

struct LoopOutcome {
  Ending ending = Ending::finished;
  LoopState state;                           // with the window, at rank 0
  std::optional<metrics::Metrics> held_out;  // of the last evaluation
  std::optional<metrics::Metrics> best;  // ... and of the best, where this part of the run has it
  int64_t samples = 0;                   // trained by the whole run
  double seconds = 0;  // of training by this part of it, evaluations and checkpoints left out
};

struct LoopSetting {
  RunLog* log = nullptr;                           // rank 0 alone
  const std::atomic<bool>* interrupted = nullptr;  // read by rank 0
  CheckpointSaver& saver;
  std::vector<LoopHook*> hooks = {};  // the same on every rank
  RowCommits* commits = nullptr;      // null: there are none
  TrainedOrder* order = nullptr;      // null: nobody asks
};

class TrainingLoop {
 public:
  TrainingLoop(const ResolvedRun& run, Rank& rank, Communicator& communicator,
               const LoopSetting& setting, const LoopState& start);

  /// Collective; the outcome is the same on every rank. What was saved is on the disk then.
  Result<LoopOutcome> run();

 private:
  Result<LoopOutcome> go_through(DataStage& stage);
  Status end_by(const Status& why);
  void tell_of_cache(const RankBatch& batch);
  Status train(const RankBatch& batch);
  Status evaluate(const RankBatch& batch);
  Status finish_evaluation();
  Status follow_schedule(const RankBatch& batch);
  Status judge_schedule(const RankBatch& batch);
  Status keep_best();
  Result<std::optional<store::FarCounts>> far_of_step() const;
  Status report(const RankBatch& batch, double learning_rate_scale);
  LoopState whole_state() const;
  Status save(SavedAs as = SavedAs::in_turn);
  Status make_way(const RankBatch& batch);
  Status make_way_for_means();
  Status agree(bool stop);

  const ResolvedRun& run_;
  Rank& rank_;
  Communicator& communicator_;
  const LoopSetting setting_;
  LoopState state_;
  LoopOutcome outcome_;
  bool stop_ = false;
  // What rank 0 tells after an iteration: to stop; of each hook; of commits.
  std::vector<int64_t> agreed_;
  bool is_best_ = false;  // the evaluation that has just ended
  int64_t saved_iteration_ = -1;
  Scores scores_;
  metrics::SampleWindow window_;         // rank 0: samples scored before their update
  metrics::SampleWindow held_out_{0};    // of the evaluation under way
  std::optional<store::FarCounts> far_;  // of an iteration that is told of
  std::string detail_;                   // behind the progress line
  Stopwatch since_report_;
  double report_seconds_ = 0.0;  // that metrics of the last report took
  int64_t reported_samples_ = 0;
};

}  // namespace recmill::train
