// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace recmill::lookahead {

/// The rows that a step uses, each once, and which ranks use it.
struct StepUses {
  std::vector<int64_t> rows;    // ascending
  std::vector<int64_t> begins;  // [rows + 1], into ranks
  std::vector<int32_t> ranks;   // of each row, ascending

  int64_t count() const { return static_cast<int64_t>(rows.size()); }
  std::span<const int32_t> users(int64_t i) const {
    return {ranks.data() + begins[i], ranks.data() + begins[i + 1]};
  }
  int64_t bytes() const {
    return static_cast<int64_t>((rows.capacity() + begins.capacity()) * sizeof(int64_t) +
                                ranks.capacity() * sizeof(int32_t));
  }
};

/// From each rank's distinct rows, ascending.
StepUses merge_uses(std::span<const std::vector<int64_t>> rows_of_ranks);

}  // namespace recmill::lookahead
