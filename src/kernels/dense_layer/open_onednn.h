// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"

namespace recmill::kernels::dense_layer {

/// Opens oneDNN, once in a process; no function of it may be called before. Fails, naming the
/// library that is missing.
Status open_onednn();

}  // namespace recmill::kernels::dense_layer
