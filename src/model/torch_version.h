// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::model {

/// Of the LibTorch that is loaded, and the instruction set that its kernels use here: "2.11.0,
/// AVX512".
std::string torch_version();

}  // namespace recmill::model
