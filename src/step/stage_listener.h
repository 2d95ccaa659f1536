// SPDX-License-Identifier: Apache-2.0
// The stages of an iteration, and who hears of them.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "device/wait_gate.h"

namespace recmill::train {

enum class Stage {
  data,             // waits for the batch that the data stage makes
  lookup,           // rows to bags
  dense_layers,     // forward, loss, and backward
  dense_gradients,  // summed over ranks
  dense_update,
  row_update,  // gradients of rows, to their owners, applied
  scores,      // gathered for metrics, and the agreement to go on
  checkpoint,
  evaluation,  // from lookup to metrics
};
inline constexpr std::array kStageNames{
    "data",       "lookup", "dense layers", "dense gradients", "dense update",
    "row update", "scores", "checkpoint",   "evaluation"};

class StageListener {
 public:
  virtual ~StageListener() = default;
  /// On the thread that trains: the stage begins, and the one before has ended.
  virtual void enter(Stage stage) = 0;
};

/// Whether training waits in a stage, for data or for other ranks, more than it computes.
inline bool is_wait(Stage stage, int ranks) {
  if (stage == Stage::data) return true;
  return ranks > 1 && (stage == Stage::dense_gradients || stage == Stage::scores);
}

/// Opens a gate in the waits of training and closes it for the other stages.
class GateInWaits final : public StageListener {
 public:
  GateInWaits(std::shared_ptr<WaitGate> gate, int ranks) : gate_(std::move(gate)), ranks_(ranks) {}
  void enter(Stage stage) override {
    if (is_wait(stage, ranks_)) {
      gate_->open();
    } else {
      gate_->close();
    }
  }

 private:
  const std::shared_ptr<WaitGate> gate_;
  const int ranks_;
};

}  // namespace recmill::train
