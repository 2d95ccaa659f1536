// SPDX-License-Identifier: Apache-2.0
#include "step/gradient_reduction.h"

#include <utility>

namespace recmill::train {

Result<std::unique_ptr<GradientReduction>> GradientReduction::create(Communicator& communicator,
                                                                     int slices) {
  RECMILL_ASSIGN_OR_RETURN(auto own, communicator.duplicate());
  return std::unique_ptr<GradientReduction>(new GradientReduction(std::move(own), slices));
}

void GradientReduction::begin(std::vector<SlicePart<float>> parts, std::span<float> total) {
  RECMILL_CHECK(!under_way_.valid());
  parts_ = std::move(parts);
  before_ = communicator_->traffic();
  under_way_ = std::async(std::launch::async, [this, total, watch = Stopwatch()] {
    const Status status = reduce_(parts_, total);
    seconds_ = watch.seconds();
    return status;
  });
}

Result<GradientReduction::Outcome> GradientReduction::finish() {
  const Stopwatch watch;
  RECMILL_RETURN_IF_ERROR(under_way_.get());
  const Traffic after = communicator_->traffic();
  return Outcome{seconds_,
                 {watch.seconds(), after.sent - before_.sent, after.received - before_.received}};
}

}  // namespace recmill::train
