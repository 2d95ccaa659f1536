// SPDX-License-Identifier: Apache-2.0
// The two-stage tuner on a GPU (RecFlex, section IV-A): for each occupancy all candidates of each
// class are timed at that occupancy (local stage); the winners of each occupancy are fused, and the
// fastest fused kernel that spills no registers wins (global stage).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/tune/gpu_pool_subject.h"
#include "kernels/tune/record.h"

namespace recmill::kernels::tune {

struct GpuTunerOptions {
  std::vector<int64_t> blocks;  // of an SM: occupancies that are compared
  int64_t visited = 8;          // batches of the local stage, at most
  int64_t rounds = 5;           // times that each is visited
  int64_t fused_rounds = 11;    // of the global stage, on all batches
};

/// All numbers of blocks of embedding_pool's kernels that fit an SM and leave a thread
/// the registers that it needs.
std::vector<int64_t> gpu_occupancies(const GpuProperties& gpu);

/// Measures and chooses; logs which values were left out, as their fused kernels spill. `progress`:
/// how much is done, 0 to 1. `stop` ends it early with an error. Fails as the subject, and where no
/// candidate of a class is right.
Result<FamilyTuning> tune_on_gpu(GpuPoolSubject& subject, const GpuTunerOptions& options,
                                 const std::function<void(double done)>& progress,
                                 const std::atomic<bool>& stop);

/// The choice's schedules by class.
std::vector<Schedule> schedules_of(const Choice& choice);

/// Seconds of a batch with each of the fused kernels, run in alternation: medians over rounds.
Result<std::vector<double>> race_on_gpu(GpuPoolSubject& subject,
                                        std::span<const codegen::CompiledGpuPool> fused,
                                        int64_t rounds, const std::atomic<bool>& stop);

}  // namespace recmill::kernels::tune
