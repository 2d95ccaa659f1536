// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/stream_zeros.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

namespace recmill::kernels {

namespace hn = hwy::HWY_NAMESPACE;

void stream_zeros(std::span<float> to) {
  constexpr hn::ScalableTag<float> kTag;
  const size_t width = hn::Lanes(kTag);
  const size_t past = reinterpret_cast<uintptr_t>(to.data()) / sizeof(float) % width;
  const size_t before = std::min(to.size(), (width - past) % width);
  std::ranges::fill(to.first(before), 0.0f);
  size_t at = before;
  for (; at + width <= to.size(); at += width) hn::Stream(hn::Zero(kTag), kTag, to.data() + at);
  std::ranges::fill(to.subspan(at), 0.0f);
}

void finish_streaming() {
  hwy::FlushStream();
}

}  // namespace recmill::kernels
