// SPDX-License-Identifier: Apache-2.0
// A training run in float64: plain parser and preprocessing, then rows, layers, loss and optimizers
// in float64, the whole batch at once.
#pragma once

#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "device/buffer.h"
#include "model/model.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Rows and parameters as training left them.
struct Float64Outcome {
  int64_t iterations = 0;
  std::vector<Buffer> tables;  // [tables], each float64 [rows][dim]
  std::vector<model::ParameterSpec> layers;
  std::vector<double> parameters;  // as `layers` says where
};

/// Trains from the initial rows and parameters of the float32 run, over the same batches. Running
/// statistics of batch normalisation are not followed: training does not read them.
Result<Float64Outcome> train_in_float64(const ResolvedRun& run, Files& files);

}  // namespace recmill::train
