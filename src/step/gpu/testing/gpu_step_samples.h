// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step that tests run: of every dense optimizer.
#pragma once

#include <array>

#include "step/optimizer/optimizer_options.h"

namespace recmill::train {

using GpuStepEntry = void (*)(const void* arguments);

struct GpuStepSample {
  const char* name;
  DenseOptimizerOptions options;
};

inline std::array<GpuStepSample, 4> gpu_step_samples() {
  std::array<GpuStepSample, 4> samples{
      {{"sgd", {}}, {"momentum", {}}, {"adagrad", {}}, {"adam", {}}}};
  samples[1].options.momentum = 0.9;
  samples[2].options.kind = DenseOptimizerKind::adagrad;
  samples[2].options.initial_accumulator = 0.1;
  samples[3].options.kind = DenseOptimizerKind::adam;
  for (GpuStepSample& sample : samples) {
    sample.options.learning_rate = 0.1;
    sample.options.weight_decay = 0.01;
  }
  return samples;
}

// Their kernels, compiled, as the emulator calls them: of gpu_step_sources().
extern const std::array<GpuStepEntry, 4> gpu_step_sgd, gpu_step_momentum, gpu_step_adagrad,
    gpu_step_adam;

}  // namespace recmill::train
