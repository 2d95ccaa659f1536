// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "model/float64_model.h"

namespace recmill::model {

/// make_float64_model(), for what that has checked.
std::unique_ptr<Float64Model> make_float64_tensors(const ModelOptions& options,
                                                   const ModelSpec& spec, uint64_t seed);

}  // namespace recmill::model
