// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/buffer.h"
#include "model/model.h"

namespace recmill::model {

/// All parameters' first values on huge pages, as products read weights where they are.
Result<Buffer> initial_parameters(const Model& model, uint64_t seed);

}  // namespace recmill::model
