// SPDX-License-Identifier: Apache-2.0
// What of a run is in its checkpoints, and how it gets there and back.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/json_lines.h"
#include "base/status.h"
#include "checkpoint/background_writer.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "comm/communicator.h"
#include "train/rank.h"
#include "train/training_loop.h"

namespace recmill::train {

/// Saves a rank's part of everything into `folder`/step-N, and removes all but the newest
/// checkpoint.keep. With one rank training goes on while a copy is written behind it; with several,
/// each rank writes the rows that it owns, rank 0 the rest, and all wait for each other.
class CheckpointSaver {
 public:
  CheckpointSaver(const ResolvedRun& run, Rank& rank, Communicator& communicator, Files& files,
                  std::string folder);

  /// As after `state.position`. Collective. May report the failure of the save before.
  Status save(const LoopState& state);
  /// Returns when all that was saved is on the disk.
  Status wait() { return background_.wait(); }

 private:
  Status save_behind(const LoopState& state);
  Status save_together(const LoopState& state);
  Status publish(checkpoint::Writer& writer, std::vector<checkpoint::PartContents> parts,
                 const Json& properties) const;

  const ResolvedRun& run_;
  Rank& rank_;
  Communicator& communicator_;
  Files& files_;
  const std::string folder_;
  checkpoint::BackgroundWriter background_;  // last: ends before what its work refers to
};

/// Loads a checkpoint into a rank, whatever the number of ranks that wrote it, and says where
/// training goes on. Refuses, naming what differs, one of other columns, tables or layers, and for
/// training one of another batch size, seed or number of shards. Without `for_training` optimizers'
/// states stay as they are.
Result<LoopState> restore_checkpoint(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                     bool for_training);

}  // namespace recmill::train
