// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill {

/// The instruction set that our kernels run on here, as Highway calls it ("AVX3_DL"): the best that
/// both this machine and the build have.
std::string instruction_set();

}  // namespace recmill
