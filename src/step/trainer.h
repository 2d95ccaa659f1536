// SPDX-License-Identifier: Apache-2.0
// One rank's training step, wherever its layers are computed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "step/forward_state.h"
#include "step/rank_batch.h"
#include "step/stage_gate.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// What a step or a scoring found, on every rank the same but for `logits`.
struct StepResult {
  double loss = 0.0;              // sum of w_i l_i over the global batch, by the tree over slices
  int64_t samples = 0;            // of the global batch
  std::span<const float> logits;  // this rank's samples, before the update; until the next step
};

class Trainer {
 public:
  virtual ~Trainer() = default;

  /// Takes parameters() and the dense optimizer's state into use: once before the first step, and
  /// after they were changed.
  virtual Status load_parameters() = 0;

  /// Sends what a step reads of a batch to where it is computed, beside the steps before: for its
  /// RankBatch::sent. Null: nothing has to be sent. For the thread that prepares batches.
  virtual Result<std::unique_ptr<SentInputs>> send_ahead(const DenseBatch&) {
    return std::unique_ptr<SentInputs>();
  }

  /// One training iteration. Collective. A loss that is not finite is an error that names table and
  /// row, layer, or dense column; parameters and rows are then as before the step.
  virtual Result<StepResult> train(const RankBatch& batch, const store::Step& step) = 0;

  /// Logits of this rank's samples, and the other results of `state`; changes nothing else.
  /// Collective, one at a time. With one rank and layers on the CPU any number of threads at once,
  /// each with a state of its own, while nothing is trained.
  virtual Status predict(const RankBatch& batch, ForwardState& state) = 0;

  /// The same, until the next step, and the loss of the global batch, which has to be finite as in
  /// train(). Collective.
  virtual Result<StepResult> score(const RankBatch& batch) = 0;

  /// parameters() and the dense optimizer's state become those after the last step.
  virtual Status settle() = 0;
  virtual std::span<float> parameters() const = 0;

  /// train() and score() enter the stages of a step, and leave it in the last one.
  virtual StageGate& stages() = 0;
};

}  // namespace recmill::train
