// SPDX-License-Identifier: Apache-2.0
// What of a run is in its checkpoints, and how it gets there and back.
#pragma once

#include <string>

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/reader.h"
#include "comm/communicator.h"
#include "train/rank.h"
#include "train/training_loop.h"

namespace recmill::train {

/// Saves everything as after `state.position` into `folder`/step-N, and removes all but the newest
/// checkpoint.keep. Collective: each rank writes the rows that it owns, rank 0 the rest.
Status save_checkpoint(const ResolvedRun& run, Rank& rank, Communicator& communicator, Files& files,
                       const std::string& folder, const LoopState& state);

/// Loads a checkpoint into a rank, whatever the number of ranks that wrote it, and says where
/// training goes on. Refuses, naming what differs, one of other columns, tables or layers, and for
/// training one of another batch size, seed or number of shards. Without `for_training` optimizers'
/// states stay as they are.
Result<LoopState> restore_checkpoint(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                     bool for_training);

}  // namespace recmill::train
