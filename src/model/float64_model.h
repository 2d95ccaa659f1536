// SPDX-License-Identifier: Apache-2.0
// Every model in float64, over a whole batch at once: what float32 runs are measured against.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// A whole training batch. Pooled features are side by side in feature order.
struct Float64Batch {
  int64_t first_sample = 0;
  int64_t iteration = 0;
  int64_t samples = 0;
  std::vector<double> dense;                   // [samples][num_dense]
  std::vector<double> pooled;                  // [samples][sum of pooled features' dims]
  std::vector<std::vector<double>> sequences;  // [unpooled features], each [lookups][dim]
  std::vector<JaggedView> rows;                // [features]
};

/// The loss's gradient by what the batch holds and by the parameters.
struct Float64Gradient {
  std::vector<double> pooled;
  std::vector<std::vector<double>> sequences;
  std::vector<double> parameters;  // [parameter count]
};

/// For one thread.
class Float64Model {
 public:
  virtual ~Float64Model() = default;
  /// Names and shapes of the float32 model's; offsets are this model's own.
  virtual const std::vector<ParameterSpec>& parameters() const = 0;
  virtual int64_t parameter_count() const = 0;
  /// Logits [samples]; keeps what backward() needs.
  virtual Result<std::vector<double>> forward(const Float64Batch& batch,
                                              std::span<const double> parameters) = 0;
  /// Of the batch of the last forward().
  virtual Result<Float64Gradient> backward(std::span<const double> logit_gradient) = 0;
};

/// Layers are float64 whatever options.precision says.
Result<std::unique_ptr<Float64Model>> make_float64_model(const ModelOptions& options,
                                                         const ModelSpec& spec, uint64_t seed);

}  // namespace recmill::model
