// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step beside lookups, layers and row updates: the loss, and the dense
// optimizer. Sums are the same for the same grid.
#pragma once

#include "device/kernel.cuh"
#include "device/std_for_kernels.cuh"
#include "train/gpu/gpu_step_arguments.h"

namespace recmill::train::gpu {

/// One number of each thread of a block, added by halves.
struct BlockSum {
  struct Shared {
    double parts[kStepThreads];
  };
  /// The sum, for thread 0.
  RECMILL_DEVICE static double of(double part, Shared& shared) {
    shared.parts[threadIdx.x] = part;
    for (int half = kStepThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < half)
        shared.parts[threadIdx.x] += shared.parts[threadIdx.x + half];
    }
    return shared.parts[0];
  }
};

struct LogLoss {
  using Shared = BlockSum::Shared;

  RECMILL_DEVICE static void run(const LogLossArguments& of, Shared& shared) {
    const i64 threads = static_cast<i64>(gridDim.x) * kStepThreads;
    double loss = 0;
    for (i64 i = static_cast<i64>(blockIdx.x) * kStepThreads + threadIdx.x; i < of.samples;
         i += threads)
      loss += sample(of, i);
    const double sum = BlockSum::of(loss, shared);
    if (threadIdx.x == 0) of.sums[blockIdx.x] = sum;
  }

 private:
  RECMILL_DEVICE static double sample(const LogLossArguments& of, i64 i) {
    const double z = of.logits[i], y = of.labels[i];
    const double w = of.weights == nullptr ? 1.0 : static_cast<double>(of.weights[i]);
    const double e = std::exp(z >= 0 ? -z : z);
    const double p = z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
    if (of.gradient != nullptr)
      of.gradient[i] = static_cast<float>(w * (p - y) / static_cast<double>(of.global_samples));
    of.probabilities[i] = static_cast<float>(p);
    return w * ((z > 0 ? z : 0.0) - z * y + std::log1p(e));
  }
};

struct Squares {
  using Shared = BlockSum::Shared;

  RECMILL_DEVICE static void run(const SquaresArguments& of, Shared& shared) {
    const i64 threads = static_cast<i64>(gridDim.x) * kStepThreads;
    double squares = 0;
    for (i64 i = static_cast<i64>(blockIdx.x) * kStepThreads + threadIdx.x; i < of.count;
         i += threads)
      squares += static_cast<double>(of.values[i]) * static_cast<double>(of.values[i]);
    const double sum = BlockSum::of(squares, shared);
    if (threadIdx.x == 0) of.sums[blockIdx.x] = sum;
  }
};

template <class Formula>
struct DenseUpdate {
  struct Shared {
    float clip;
  };

  RECMILL_DEVICE static void run(const DenseUpdateArguments& of, Shared& shared) {
    if (threadIdx.x == 0) shared.clip = clip(of);
    __syncthreads();
    StepConstants constants = of.constants;
    constants.clip = shared.clip;
    const i64 threads = static_cast<i64>(gridDim.x) * kStepThreads;
    for (i64 i = static_cast<i64>(blockIdx.x) * kStepThreads + threadIdx.x; i < of.count;
         i += threads)
      if (is_trained(of, i)) element(of, constants, i);
  }

 private:
  RECMILL_DEVICE static float clip(const DenseUpdateArguments& of) {
    if (of.clip_norm == 0) return 1.0f;
    double squares = 0;
    for (int s = 0; s < of.square_count; ++s) squares += of.squares[s];
    const double norm = std::sqrt(squares);
    return norm > of.clip_norm ? static_cast<float>(of.clip_norm / norm) : 1.0f;
  }
  RECMILL_DEVICE static bool is_trained(const DenseUpdateArguments& of, i64 i) {
    for (int s = 0; s < of.stretch_count; ++s)
      if (i >= of.stretches[s].first && i < of.stretches[s].first + of.stretches[s].count)
        return true;
    return false;
  }
  RECMILL_DEVICE static void element(const DenseUpdateArguments& of, const StepConstants& constants,
                                     i64 i) {
    float none = 0;
    Formula::element(constants, of.parameters[i], of.gradient[i],
                     Formula::kState < 1 ? none : of.first_state[i],
                     Formula::kState < 2 ? none : of.second_state[i]);
  }
};

}  // namespace recmill::train::gpu
