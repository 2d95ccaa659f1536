// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "checkpoint/reader.h"
#include "run/folder/run_folder.h"
#include "run/rank.h"
#include "step/loop_state.h"

namespace recmill::train {

/// Refuses, naming what differs, a checkpoint of other columns, or in which rows and layers mean
/// something else (trained_meaning.h), and for training one of another batch size, seed, number of
/// slices or optimizer.
Status check_origin(const ResolvedRun& run, const checkpoint::Reader& reader, bool for_training);

/// The same of what a checkpoint of before does not say, by the config.toml of its run; without one
/// it is said that nothing is compared. Before --resume writes that file anew.
Status check_untold_origin(const ResolvedRun& run, const checkpoint::Reader& reader,
                           const ReadOptions& read_options, Files& files);

/// The last samples of training that a checkpoint has, scored before their update.
Result<metrics::WindowContents> read_window(checkpoint::Reader& reader);

/// Loads a checkpoint into a rank, whatever the number of ranks that wrote it, and says where
/// training goes on. Refuses what check_origin() does, and other tables or layers. Without
/// `for_training` optimizers' states stay as they are.
Result<LoopState> restore_checkpoint(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                     bool for_training);

/// After check_origin(): the same of all but rows, which are at a home already.
Result<LoopState> restore_state(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                bool for_training);

}  // namespace recmill::train
