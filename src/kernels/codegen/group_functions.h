// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/codegen/pool_function.h"

namespace recmill::kernels::codegen {

/// Each once, those of like schedules beside each other.
std::vector<PoolFunction> distinct_functions(std::span<const PoolFunction> wanted);

/// In groups of at most `most`, as even as they can be; one at least.
std::vector<std::vector<PoolFunction>> group_functions(std::span<const PoolFunction> functions,
                                                       int64_t most);

}  // namespace recmill::kernels::codegen
