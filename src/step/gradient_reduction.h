// SPDX-License-Identifier: Apache-2.0
// Sums the dense gradients of an iteration over all ranks while these do something else.
#pragma once

#include <future>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "comm/ordered_reduce.h"
#include "device/thread_pool.h"

namespace recmill::train {

/// One ordered_reduce at a time, on a thread and by a communicator of its own.
class GradientReduction {
 public:
  /// Collective. `communicator` outlives this.
  static Result<std::unique_ptr<GradientReduction>> create(Communicator& communicator, int slices);

  /// Begins OrderedReduce's call. `parts` and `total` are its own until finish(), which follows,
  /// whatever fails meanwhile: then after abort() of the communicator, so that no rank waits.
  void begin(std::vector<SlicePart<float>> parts, std::span<float> total);

  /// What a reduction took.
  struct Outcome {
    double seconds = 0.0;  // from begin() to its end
    Traffic traffic;       // `seconds`: that finish() waited
  };
  /// Waits for its end.
  Result<Outcome> finish();

 private:
  GradientReduction(std::unique_ptr<Communicator> communicator, int slices)
      : communicator_(std::move(communicator)), reduce_(*communicator_, slices, alone_) {}

  const std::unique_ptr<Communicator> communicator_;
  ThreadPool alone_{1};
  OrderedReduce<float> reduce_;
  std::vector<SlicePart<float>> parts_;
  Traffic before_;
  double seconds_ = 0.0;
  std::future<Status> under_way_;  // last: waits for its thread when it goes
};

}  // namespace recmill::train
