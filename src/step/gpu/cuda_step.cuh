// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step beside lookups, layers and row updates: the loss, and the dense
// optimizer. Sums are the same for the same grid.
#pragma once

#include "device/kernel.cuh"
#include "device/std_for_kernels.cuh"
#include "step/gpu/gpu_step_arguments.h"

namespace recmill::train::gpu {

/// A sum over `count` items of which each block adds its own: a thread's in order, then the
/// threads' by halves.
struct GridSum {
  struct Shared {
    double parts[kStepThreads];
  };
  /// sums [blocks]: the parts of item(0) + ... + item(count - 1).
  template <class Item>
  RECMILL_DEVICE static void run(i64 count, double* sums, Shared& shared, const Item& item) {
    const i64 threads = static_cast<i64>(gridDim.x) * kStepThreads;
    double sum = 0;
    for (i64 i = static_cast<i64>(blockIdx.x) * kStepThreads + threadIdx.x; i < count; i += threads)
      sum += item(i);
    shared.parts[threadIdx.x] = sum;
    for (int half = kStepThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < half)
        shared.parts[threadIdx.x] += shared.parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = shared.parts[0];
  }
};

struct LogLoss {
  using Shared = GridSum::Shared;

  RECMILL_DEVICE static void run(const LogLossArguments& of, Shared& shared) {
    GridSum::run(of.samples, of.sums, shared, [&](i64 i) { return sample(of, i); });
  }

 private:
  RECMILL_DEVICE static double sample(const LogLossArguments& of, i64 i) {
    const double z = of.logits[i], y = of.labels[i];
    const double w = of.weights == nullptr ? 1.0 : static_cast<double>(of.weights[i]);
    const double e = std::exp(z >= 0 ? -z : z);
    const double p = z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
    if (of.gradient != nullptr)
      of.gradient[i] = static_cast<float>(w * (p - y) / static_cast<double>(of.global_samples));
    return w * ((z > 0 ? z : 0.0) - z * y + std::log1p(e));
  }
};

struct Squares {
  using Shared = GridSum::Shared;

  RECMILL_DEVICE static void run(const SquaresArguments& of, Shared& shared) {
    GridSum::run(of.count, of.sums, shared, [&](i64 i) {
      return static_cast<double>(of.values[i]) * static_cast<double>(of.values[i]);
    });
  }
};

struct SumOfRanks {
  struct Shared {};

  RECMILL_DEVICE static void run(const SumOfRanksArguments& of, Shared&) {
    const i64 threads = static_cast<i64>(gridDim.x) * kStepThreads;
    for (i64 i = static_cast<i64>(blockIdx.x) * kStepThreads + threadIdx.x; i < of.count;
         i += threads) {
      float sum = of.rank == 0 ? of.own[i] : of.others[i];
      for (int rank = 1; rank < of.ranks; ++rank)
        sum += rank == of.rank ? of.own[i] : of.others[rank * of.stride + i];
      of.own[i] = sum;
    }
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
