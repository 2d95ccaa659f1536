// SPDX-License-Identifier: Apache-2.0
#include "lookahead/step_uses.h"

#include <algorithm>
#include <utility>

namespace recmill::lookahead {

StepUses merge_uses(std::span<const std::vector<int64_t>> rows_of_ranks) {
  std::vector<std::pair<int64_t, int32_t>> uses;
  for (size_t rank = 0; rank < rows_of_ranks.size(); ++rank)
    for (const int64_t row : rows_of_ranks[rank])
      uses.emplace_back(row, static_cast<int32_t>(rank));
  std::ranges::sort(uses);
  StepUses merged;
  for (const auto& [row, rank] : uses) {
    if (merged.rows.empty() || merged.rows.back() != row) {
      merged.rows.push_back(row);
      merged.begins.push_back(std::ssize(merged.ranks));
    }
    merged.ranks.push_back(rank);
  }
  merged.begins.push_back(std::ssize(merged.ranks));
  return merged;
}

}  // namespace recmill::lookahead
