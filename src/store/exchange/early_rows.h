// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace recmill::store {

/// Weights that other ranks send before the step that looks them up, as float32. One thread fills
/// them in, and then another one reads them; rows that are written meanwhile are written here too.
class EarlyRows {
 public:
  struct Row {
    int rank = 0;     // that has it
    int64_t row = 0;  // a number that no other row has
    int table = 0;
    int64_t slot = 0;  // of that rank's table
    int64_t dim = 0;
  };
  /// Of each rank in the order in which they come.
  EarlyRows(std::span<const Row> rows, int ranks);

  /// Of a rank how many come.
  size_t count(int rank) const { return places_[rank].size(); }
  /// The table of the n-th of them, and room for its weights [dim].
  int table(int rank, size_t n) const { return places_[rank][n].table; }
  std::span<float> room(int rank, size_t n);
  /// Those of rows [first, end).
  struct Written {
    int64_t row = 0;
    std::span<float> weights;
  };
  std::vector<Written> in_range(int64_t first, int64_t end);
  /// The weights of a row [dim]; null: it does not come early.
  const float* find(int rank, int table, int64_t slot) const;

 private:
  struct Place {
    int64_t row = 0;
    int table = 0;
    int64_t slot = 0, dim = 0;
    size_t begin = 0;  // of weights_
  };
  std::vector<std::vector<Place>> places_;   // [ranks], as they come
  std::vector<std::vector<Place>> by_slot_;  // [ranks], ascending
  std::vector<float> weights_;
};

}  // namespace recmill::store
