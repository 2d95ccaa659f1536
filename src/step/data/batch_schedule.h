// SPDX-License-Identifier: Apache-2.0
// Which batches there are, and where evaluations are due among them. Pure.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "step/data/stream_position.h"

namespace recmill::train {

struct BatchSchedule {
  int64_t batch_size = 1;
  int64_t eval_batch_size = 1;
  int64_t epochs = 1;
  int64_t iterations = 0;      // 0: by epochs
  int64_t evaluate_every = 0;  // 0: after each epoch
  double negative_keep = 1.0;  // share of negatives that training keeps
  uint64_t seed = 0;           // of the down-sampling
  int slices = 1;
  int rank = 0;
  int ranks = 1;
  bool evaluates = true;          // false: training batches alone
  bool dictionaries_grow = true;  // false: they are full when training begins
  bool serves = false;            // evaluation batches are requests: who answers them prepares them
};

/// Whether training is over at `position`, given that epochs end where a position's row is 0.
bool training_is_over(const BatchSchedule& schedule, const StreamPosition& position);
/// Whether an evaluation follows the training batch that led to `position`.
bool evaluation_is_due(const BatchSchedule& schedule, const StreamPosition& position);

/// Whether training keeps the sample at `row` of the order of an epoch, of whose down-sampling
/// `random` is.
bool is_kept(const Random& random, double negative_keep, float label, int64_t row);

}  // namespace recmill::train
