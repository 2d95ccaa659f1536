// SPDX-License-Identifier: Apache-2.0
// Every model with tensors: in whatever precision, and on whatever device, its tensors are.
#pragma once

#include <memory>

#include "model/torch/torch_model.h"

namespace recmill::model {

/// For what make_model() has checked. Names, shapes and initial values of parameters are those of
/// make_model()'s; offsets may be others.
std::unique_ptr<TorchModel> make_tensor_model(const ModelOptions& options, const ModelSpec& spec,
                                              uint64_t seed);

}  // namespace recmill::model
