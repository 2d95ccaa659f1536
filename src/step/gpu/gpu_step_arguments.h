// SPDX-License-Identifier: Apache-2.0
// What the kernels of a training step are given. Read by the compilers of kernels too; all pointers
// are of the device.
#pragma once

#include "device/kernel_types.h"
#include "step/optimizer/dense_formulas.h"

namespace recmill::train::gpu {

constexpr int kStepThreads = 256;  // of a block
constexpr int kMostSums = 256;     // blocks whose sums are added by one thread

/// As add_log_loss().
struct LogLossArguments {
  const float* logits;   // [samples]
  const float* labels;   // beside
  const float* weights;  // beside, or null
  i64 samples;
  i64 global_samples;
  float* gradient;  // beside, or null
  double* sums;     // [blocks]: the blocks' parts of the loss
};

struct SquaresArguments {
  const float* values;
  i64 count;
  double* sums;  // [blocks]
};

/// Values of all ranks, added in the order of ranks.
struct SumOfRanksArguments {
  float* own;           // [count]: this rank's, and then the sum
  const float* others;  // [ranks][stride]; this rank's are not read
  i64 count, stride;
  i32 rank, ranks;
};

/// Elements [first, first + count) of the flat vector.
struct ParameterStretch {
  i64 first, count;
};

/// As DenseOptimizer::apply().
struct DenseUpdateArguments {
  float* parameters;
  const float* gradient;
  float* first_state;
  float* second_state;
  i64 count;                          // of the flat vector
  const ParameterStretch* stretches;  // that are trained
  i32 stretch_count;
  StepConstants constants;
  const double* squares;  // [square_count]: sums of the gradient's squares
  i32 square_count;
  double clip_norm;  // 0: no limit
};

}  // namespace recmill::train::gpu
