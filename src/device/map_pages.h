// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace recmill {

constexpr size_t kHugePage = size_t{2} << 20;

/// Maps `bytes`, whole pages of `unit`, of zeros at an address that is a multiple of it, as huge
/// pages demand. Null, with errno, where the machine does not have them.
std::byte* map_pages(size_t bytes, size_t unit);

}  // namespace recmill
