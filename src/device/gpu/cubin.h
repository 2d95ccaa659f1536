// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu_properties.h"

namespace recmill {

/// What the kernels of a compiled binary (ELF, as ptxas of CUDA 13 writes it) take, in its order.
/// Fails where it is none, or is cut off.
Result<std::vector<KernelResources>> read_cubin(std::span<const std::byte> cubin);

}  // namespace recmill
