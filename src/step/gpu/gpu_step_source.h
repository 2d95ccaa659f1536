// SPDX-License-Identifier: Apache-2.0
// The kernels of a training step (step/gpu/cuda_step.cuh) as a text for GPUs.
#pragma once

#include <string>
#include <vector>

#include "kernels/codegen/gpu/gpu_source.h"
#include "step/optimizer/optimizer_options.h"

namespace recmill::train {

/// The loss, the sum of a gradient's squares, the dense update by that optimizer, the sum of what
/// ranks have: four kernels of one text, in this order. `made_by` names the program and its
/// version.
std::vector<kernels::codegen::GpuSource> gpu_step_sources(const DenseOptimizerOptions& optimizer,
                                                          const std::string& made_by);

}  // namespace recmill::train
