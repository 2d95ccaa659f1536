// SPDX-License-Identifier: Apache-2.0
// Times features each by itself in the run of all: all threads go through the features one after
// the other, as in the fused run.
#pragma once

#include "kernels/tune/tuner.h"

namespace recmill::kernels::tune {

/// Nanoseconds of a batch by class, all features of it on one thread, with `choice`: the mean over
/// all batches, `rounds` times. Fails where `stop` is set.
Result<std::vector<double>> measure_classes(TuningSubject& subject, const Choice& choice,
                                            int64_t rounds, const Clock& clock, ThreadPool& pool,
                                            const std::atomic<bool>& stop);

struct FinalistsOptions {
  int64_t rounds = 0;  // times that a finalist is in use on every batch
  uint64_t seed = 1;
  int64_t until_ns = 0;  // by the clock: afterwards no round begins but the first
};

/// Compares each class's best candidates at one value, by their times there, and the shared()
/// schedule. Each time that a batch is gone through, each class has another of its finalists in
/// use, in random orders, so that one finalist meets all of the others' alike. Sets
/// CandidateTime::among_all of those that are left to the end. Fails where `stop` is set.
Status measure_finalists(TuningSubject& subject, const FinalistsOptions& options,
                         FamilyTimes& times, size_t value, const Clock& clock, ThreadPool& pool,
                         const std::atomic<bool>& stop);

}  // namespace recmill::kernels::tune
