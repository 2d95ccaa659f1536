// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints while training goes on, one mechanism for any number of ranks.
//
// save() takes what the iteration left: a snapshot of the rank's rows (store::RowSnapshot: later
// updates keep copies of what they overwrite) and, at rank 0, copies of the rest. A thread of each
// rank writes its part; where rows are at servers that may write, each of them writes its own.
// advance(), once an iteration, asks whether all ranks' parts are there; then
// a thread of rank 0 publishes the checkpoint and deletes old ones, while training goes on again.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "checkpoint/writer.h"
#include "comm/communicator.h"
#include "run/rank.h"
#include "step/loop_state.h"

namespace recmill::train {

/// A checkpoint is saved at its turn, or because the evaluation after its iteration is the best so
/// far: then it is also marked, once it is whole.
enum class SavedAs { in_turn, best };

/// Publishes the checkpoints of one run and deletes old ones. When training fails, the ranks end
/// one by one and can no longer ask each other: each leaves here what it has in hand of a
/// checkpoint, so that one that was taken as a whole becomes one.
class CheckpointPublisher {
 public:
  /// `folder`/step-N, of which the newest `keep` and the one marked as the best stay.
  CheckpointPublisher(Files& files, std::string folder, int ranks, int64_t keep)
      : files_(files), folder_(std::move(folder)), keep_(keep), parts_(ranks) {}

  Files& files() const { return files_; }
  const std::string& folder() const { return folder_; }

  /// `parts` of all ranks.
  Status publish(checkpoint::Writer& writer, std::vector<checkpoint::PartContents> parts,
                 const Json& properties, SavedAs as) const;
  /// What is marked as the best when training begins: a checkpoint that is there, or none.
  Status begin(std::optional<int64_t> best) const;
  /// Marks a checkpoint that is there as the best.
  Status mark_best(int64_t step) const;

  /// A rank's parts of the save in hand: its own, and what it has had written. Any thread.
  void leave(int rank, std::vector<checkpoint::PartContents> parts);
  /// The rest of it. Any thread.
  void leave(std::unique_ptr<checkpoint::Writer> writer, Json properties, SavedAs as);
  /// After all ranks have ended: publishes what was left, if it is whole. Deletes it otherwise.
  Status publish_left();

 private:
  Status delete_old() const;

  Files& files_;
  const std::string folder_;
  const int64_t keep_;
  std::mutex mutex_;
  // [ranks]; guarded by mutex_
  std::vector<std::optional<std::vector<checkpoint::PartContents>>> parts_;
  std::unique_ptr<checkpoint::Writer> writer_;  // guarded by mutex_
  JsonObject properties_;                       // guarded by mutex_
  SavedAs as_ = SavedAs::in_turn;               // guarded by mutex_
};

/// All calls are collective. An error of any rank is returned on every rank by the call that finds
/// it, names the file, and leaves nothing of the checkpoint.
class CheckpointSaver {
 public:
  /// All referenced objects outlive the saver; the publisher is that of all ranks.
  CheckpointSaver(const ResolvedRun& run, Rank& rank, Communicator& communicator,
                  CheckpointPublisher& publisher);
  /// What wait() did not wait for, on the way out of a failure, is left to the publisher.
  ~CheckpointSaver();

  /// Copies of rows that a rank keeps at most while they are written, in bytes; more, and training
  /// waits for the disk.
  static int64_t kept_bytes(int ranks);

  /// Adds what `rank` keeps for checkpoints, of layers of so many `parameters` with `states`
  /// numbers of the optimizer each. Training goes on over rows that are not written yet; a copy of
  /// the rest waits for the disk.
  static void need(const ResolvedRun& run, int rank, int64_t parameters, int64_t states,
                   MemoryLedger& ledger);

  /// Begins to save everything as after `state.position`; waits for the save before.
  Status save(const LoopState& state, SavedAs as = SavedAs::in_turn);
  /// Marks as the best the checkpoint of `step`, which is there or was the last to be saved.
  Status mark_best(int64_t step);
  /// Brings a save under way forward without waiting for the disk.
  Status advance();
  /// Returns when all that was saved is on the disk.
  Status wait();

 private:
  enum class Stage { idle, writing, publishing };
  bool own_work_is_done() const;
  Status finish_stage();
  Status finish_writing();
  Status finish_publishing();

  const ResolvedRun& run_;
  Rank& rank_;
  Communicator& communicator_;
  CheckpointPublisher& publisher_;
  Stage stage_ = Stage::idle;
  JsonObject properties_;                       // of the save under way
  SavedAs as_ = SavedAs::in_turn;               // of the save under way
  std::unique_ptr<checkpoint::Writer> writer_;  // rank 0: of the save under way
  std::future<Result<std::vector<checkpoint::PartContents>>> parts_;  // while writing
  std::future<Status> published_;                                     // rank 0: while publishing
};

}  // namespace recmill::train
