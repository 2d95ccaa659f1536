// SPDX-License-Identifier: Apache-2.0
// Bags of features as one message between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "batch/sparse_batch.h"

namespace recmill::store {

/// Appends the bags of one feature, in words of int64:
///   lookups; 1 when every bag has exactly one; 1 when lookups have weights
///   [samples]  where the bag ends, counted from the first lookup (not where every bag has one)
///   [lookups]  rows
///   [lookups]  weights, float32, up to a whole word
void append_bags(const JaggedView& bags, std::vector<int64_t>& message);

/// Takes bags of messages, feature by feature in the order in which they were appended, and puts
/// them behind what a feature has.
class BagReader {
 public:
  /// Refers to the bytes, which are a message of this program.
  explicit BagReader(std::span<const std::byte> message) : rest_(message) {}
  /// So many more samples for `onto`, whose offsets have a first 0 at least. Where some of its
  /// lookups have weights, the others get 1.
  void take(int64_t samples, SparseFeature& onto);
  bool is_at_end() const { return rest_.empty(); }

 private:
  /// Appends so many values to `onto`.
  template <class T>
  void read(int64_t count, std::vector<T>& onto);

  std::span<const std::byte> rest_;
};

}  // namespace recmill::store
