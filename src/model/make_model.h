// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// Whether LibTorch computes the layers, wherever they are: all but those of our own kernels.
bool needs_torch(ModelKind kind);

/// The model of `options` over `spec`, which is the result of with_model_tables(). `seed` is the
/// run's; dropout draws from it. Errors are those of check_options(), a kind that this build lacks,
/// and those of torch_library().
Result<std::unique_ptr<Model>> make_model(const ModelOptions& options, const ModelSpec& spec,
                                          uint64_t seed);

/// Numbers that a model has of a sample: what goes into its layers, and what comes out of them. May
/// saturate.
int64_t layer_numbers(const ModelOptions& options, int64_t inputs);

}  // namespace recmill::model
