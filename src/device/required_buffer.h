// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "device/buffer.h"

namespace recmill {

/// Buffer::allocate() where no error can be returned: without memory it does as operator new.
Buffer required_buffer(size_t bytes);

}  // namespace recmill
