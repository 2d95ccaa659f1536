// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "checkpoint/reader.h"
#include "train/loop_state.h"
#include "train/rank.h"

namespace recmill::train {

/// Loads a checkpoint into a rank, whatever the number of ranks that wrote it, and says where
/// training goes on. Refuses, naming what differs, one of other columns, tables or layers, and for
/// training one of another batch size, seed or number of shards. Without `for_training` optimizers'
/// states stay as they are.
Result<LoopState> restore_checkpoint(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                     bool for_training);

}  // namespace recmill::train
