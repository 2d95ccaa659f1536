// SPDX-License-Identifier: Apache-2.0
// Zeros that go to memory past the caches, where there are more of them than caches should hold.
#pragma once

#include <span>

namespace recmill::kernels {

/// Zeroes `to` by stores that read no line from memory first and leave none in the caches. Done,
/// for other threads too, once finish_streaming() has returned.
void stream_zeros(std::span<float> to);

void finish_streaming();

}  // namespace recmill::kernels
