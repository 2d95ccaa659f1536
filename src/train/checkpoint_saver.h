// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints while training goes on, one mechanism for any number of ranks.
//
// save() takes what the iteration left: a snapshot of the rank's rows (store::RowSnapshot: later
// updates keep copies of what they overwrite) and, at rank 0, copies of the rest. A thread of each
// rank writes its part. advance(), once an iteration, asks whether all ranks' parts are there; then
// a thread of rank 0 publishes the checkpoint and deletes old ones, while training goes on again.
#pragma once

#include <future>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/json_lines.h"
#include "base/status.h"
#include "checkpoint/writer.h"
#include "comm/communicator.h"
#include "train/loop_state.h"
#include "train/rank.h"

namespace recmill::train {

/// All calls are collective. An error of any rank is returned on every rank by the call that finds
/// it, names the file, and leaves nothing of the checkpoint.
class CheckpointSaver {
 public:
  /// Into `folder`/step-N, of which the newest checkpoint.keep stay. All referenced objects outlive
  /// the saver.
  CheckpointSaver(const ResolvedRun& run, Rank& rank, Communicator& communicator, Files& files,
                  std::string folder);
  /// What wait() did not wait for is finished with one rank and given up with several, whose ranks
  /// may end one by one; then what was written of it is deleted.
  ~CheckpointSaver();

  /// Begins to save everything as after `state.position`; waits for the save before.
  Status save(const LoopState& state);
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
  Files& files_;
  const std::string folder_;
  Stage stage_ = Stage::idle;
  Json properties_;                                     // of the save under way
  std::unique_ptr<checkpoint::Writer> writer_;          // rank 0: of the save under way
  std::future<Result<checkpoint::PartContents>> part_;  // while writing
  std::future<Status> published_;                       // rank 0: while publishing
};

}  // namespace recmill::train
