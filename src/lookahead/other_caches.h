// SPDX-License-Identifier: Apache-2.0
// Caches that know no future, to compare with (BagPipe, figures 3 and 4).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "lookahead/known_rows.h"

namespace recmill::lookahead {

/// Keeps the rows that were used last. Rows of a step are used in ascending order; those that are
/// too many leave at its end.
class LeastRecentlyUsed {
 public:
  explicit LeastRecentlyUsed(int64_t slots) : slots_(slots) {}

  /// The distinct rows of the next step, ascending; how many of them are fetched.
  int64_t fetch(std::span<const int64_t> rows);

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Neighbours {  // in the order of their last uses
    uint32_t later = kNone, earlier = kNone;
  };
  using Rows = KnownRows<Neighbours>;
  void take_out(Rows::Id id);
  void put_last_used(Rows::Id id);

  const int64_t slots_;
  Rows rows_;
  uint32_t latest_ = kNone, earliest_ = kNone;
  std::vector<Rows::Id> ids_;  // kept memory
  std::vector<bool> fresh_;    // kept memory
};

/// How often a row is looked up.
struct RowLookups {
  int64_t row = 0;
  int64_t lookups = 0;
  auto operator<=>(const RowLookups&) const = default;
};
/// The `count` rows of most lookups, ascending; of equals the smaller ones.
std::vector<int64_t> most_looked_up(std::vector<RowLookups> rows, int64_t count);

}  // namespace recmill::lookahead
