// SPDX-License-Identifier: Apache-2.0
#include "reader/row_order.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "base/status.h"

namespace recmill::reader {
namespace {

template <typename Index>
void permute(std::vector<Index>& items, const Random& random) {
  for (uint64_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(i, i)]);
  }
}

// Window -1 names the order of the windows themselves.
Random random_of(uint64_t seed, int64_t epoch, int64_t window) {
  return {seed, Purpose::shuffle,
          Random::mix(static_cast<uint64_t>(epoch)) ^ static_cast<uint64_t>(window + 1)};
}

}  // namespace

int64_t EpochOrder::slot_of(int64_t position) const {
  return std::upper_bound(starts.begin(), starts.end(), position) - starts.begin() - 1;
}

std::vector<int64_t> equal_windows(int64_t rows, int64_t window) {
  RECMILL_CHECK(window > 0, std::to_string(window));
  std::vector<int64_t> bounds;
  for (int64_t begin = 0; begin < rows; begin += window) bounds.push_back(begin);
  bounds.push_back(rows);
  return bounds;
}

EpochOrder order_of_epoch(const std::vector<int64_t>& bounds, ShuffleKind kind, uint64_t seed,
                          int64_t epoch) {
  EpochOrder order;
  order.windows.resize(bounds.size() - 1);
  std::iota(order.windows.begin(), order.windows.end(), int64_t{0});
  if (kind == ShuffleKind::window) permute(order.windows, random_of(seed, epoch, -1));
  order.starts.push_back(0);
  for (const int64_t window : order.windows) {
    order.starts.push_back(order.starts.back() + bounds[window + 1] - bounds[window]);
  }
  return order;
}

std::vector<uint32_t> order_in_window(int64_t size, ShuffleKind kind, uint64_t seed, int64_t epoch,
                                      int64_t window) {
  std::vector<uint32_t> rows(size);
  std::iota(rows.begin(), rows.end(), 0u);
  if (kind == ShuffleKind::window) permute(rows, random_of(seed, epoch, window));
  return rows;
}

}  // namespace recmill::reader
