// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/grouped_lookups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/status.h"

namespace recmill::kernels {
namespace {

/// Stable, by digits of eight bits from `shift` on; the result is in one of the two.
std::span<uint64_t> sort_by_row(std::span<uint64_t> keys, std::span<uint64_t> other, int64_t rows) {
  const int digits = (std::bit_width(static_cast<uint64_t>(rows - 1)) + 7) / 8;
  for (int digit = 0; digit < digits; ++digit) {
    const int shift = kPlaceBits + 8 * digit;
    std::array<uint32_t, 256> places{};
    for (uint64_t key : keys) ++places[key >> shift & 255];
    uint32_t begin = 0;
    for (uint32_t& place : places) begin += std::exchange(place, begin);
    for (uint64_t key : keys) other[places[key >> shift & 255]++] = key;
    std::swap(keys, other);
  }
  return keys;
}

}  // namespace

GroupedLookups group_lookups(const PoolTask& task, int64_t begin, int64_t end, int64_t most,
                             int64_t& sample, std::byte* scratch) {
  RECMILL_CHECK(end - begin <= most && most <= (int64_t{1} << kPlaceBits));
  const auto count = static_cast<size_t>(end - begin);
  auto* const keys = reinterpret_cast<uint64_t*>(scratch);
  auto* const samples = reinterpret_cast<int64_t*>(keys + 2 * most);
  for (int64_t j = begin; j < end; ++j) {
    while (task.bags.offsets[sample + 1] <= j) ++sample;
    samples[j - begin] = sample;
    keys[j - begin] =
        static_cast<uint64_t>(task.bags.rows[j]) << kPlaceBits | static_cast<uint64_t>(j - begin);
  }
  return {sort_by_row({keys, count}, {keys + most, count}, task.rows.count), samples};
}

}  // namespace recmill::kernels
