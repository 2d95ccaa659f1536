// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/torch_library.h"

namespace recmill::model {

/// Of the program that opened this library.
const TorchHost& host();

}  // namespace recmill::model
