// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::kernels::dense_layer {

/// Of the library that is loaded, and the instructions that it uses here: "2.6.3, ISA 0x3fff".
/// Where it is missing, what open_onednn() says.
std::string onednn_version();

}  // namespace recmill::kernels::dense_layer
