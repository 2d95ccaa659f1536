// SPDX-License-Identifier: Apache-2.0
#include "step/data/batch_schedule.h"

namespace recmill::train {

bool training_is_over(const BatchSchedule& schedule, const StreamPosition& position) {
  return position.epoch >= schedule.epochs ||
         (schedule.iterations > 0 && position.iteration >= schedule.iterations);
}

bool evaluation_is_due(const BatchSchedule& schedule, const StreamPosition& position) {
  if (position.iteration == 0) return false;
  if (training_is_over(schedule, position)) return true;
  return schedule.evaluate_every > 0 ? position.iteration % schedule.evaluate_every == 0
                                     : position.row == 0;
}

bool is_kept(const Random& random, double negative_keep, float label, int64_t row) {
  return label > 0.5f || random.uniform64(static_cast<uint64_t>(row)) < negative_keep;
}

}  // namespace recmill::train
