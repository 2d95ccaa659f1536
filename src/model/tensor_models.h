// SPDX-License-Identifier: Apache-2.0
// Every model with tensors: in whatever precision, and on whatever device, its tensors are.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/torch_model.h"

namespace recmill::model {

/// Names, shapes and initial values of parameters are make_model()'s; offsets may be others. Fails
/// as that.
Result<std::unique_ptr<TorchModel>> make_tensor_model(const ModelOptions& options,
                                                      const ModelSpec& spec, uint64_t seed);

}  // namespace recmill::model
