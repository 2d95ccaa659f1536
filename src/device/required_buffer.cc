// SPDX-License-Identifier: Apache-2.0
#include "device/required_buffer.h"

#include <new>

namespace recmill {

Buffer required_buffer(size_t bytes) {
  while (true) {
    if (auto buffer = Buffer::allocate(bytes); buffer.ok()) return *std::move(buffer);
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace recmill
