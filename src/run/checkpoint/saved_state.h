// SPDX-License-Identifier: Apache-2.0
// What a run has beside rows, as after an iteration: for checkpoints, and for homes that keep it
// beside an image of rows.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "run/rank.h"
#include "run/resolved_run.h"
#include "step/loop_state.h"

namespace recmill::train {

/// Copies, so that training may go on.
struct SavedState {
  std::vector<float> parameters;
  std::vector<DenseOptimizer::State> dense_state;
  LoopState loop;
};

/// Of a rank whose trainer is settled.
SavedState take_state(Rank& rank, LoopState loop);

/// Layers with their state, the metrics window, dictionaries. On any thread.
Status add_state(const ResolvedRun& run, const Rank& rank, const SavedState& state,
                 checkpoint::PartWriter& part);

/// A checkpoint without rows, as bytes (MemoryFiles::pack()). On any thread.
Result<std::vector<std::byte>> pack_state(const ResolvedRun& run, const Rank& rank,
                                          const SavedState& state);

/// What pack_state() has given, to be read as a checkpoint. `whose`: stands before errors.
struct PackedState {
  static Result<PackedState> open(std::span<const std::byte> bytes, const std::string& whose);

  std::unique_ptr<Files> files;
  std::unique_ptr<checkpoint::Reader> reader;  // reads them
};

}  // namespace recmill::train
