// SPDX-License-Identifier: Apache-2.0
#include "comm/subtree_sums.h"

#include <algorithm>
#include <utility>

#include "comm/add_vectors.h"

namespace recmill {

int64_t SubtreeSums::vector_bytes(int64_t elements) {
  return static_cast<int64_t>(
      Buffer::mapped_bytes_huge(static_cast<size_t>(elements) * sizeof(float)));
}

void SubtreeSums::reset() {
  std::lock_guard lock(mutex_);
  for (const auto& [first, part] : unpaired_) free_.push_back(const_cast<float*>(part.data));
  unpaired_.clear();
}

Result<float*> SubtreeSums::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    auto buffer = Buffer::allocate_huge(static_cast<size_t>(elements_) * sizeof(float));
    if (!buffer.ok()) return buffer.status().at("dense gradients of a slice");
    owned_.push_back(*std::move(buffer));
    free_.push_back(owned_.back().as<float>().data());
  }
  float* vector = free_.back();
  free_.pop_back();
  return vector;
}

void SubtreeSums::put(int slice, float* sum) {
  SliceRange range{slice, slice + 1};
  while (true) {
    const bool is_left = range.begin / range.size() % 2 == 0;
    const int other = is_left ? range.end : range.begin - range.size();
    float* sibling = nullptr;
    {
      std::lock_guard lock(mutex_);
      const auto found = unpaired_.find(other);
      if (2 * range.size() > own_.size() / 2 || found == unpaired_.end() ||
          found->second.slices.size() != range.size()) {
        const bool fresh = unpaired_.emplace(range.begin, SlicePart<float>{range, sum}).second;
        RECMILL_CHECK(fresh, std::to_string(slice));
        return;
      }
      sibling = const_cast<float*>(found->second.data);
      unpaired_.erase(found);
    }
    // Left plus right has the bits of right plus left.
    const float* const both[] = {sum, sibling};
    add_vectors(both, 2, sum, elements_);
    range = {std::min(range.begin, other), std::max(range.end, other + range.size())};
    std::lock_guard lock(mutex_);
    free_.push_back(sibling);
  }
}

std::vector<SlicePart<float>> SubtreeSums::parts() const {
  std::vector<SlicePart<float>> parts;
  for (const auto& [first, part] : unpaired_) parts.push_back(part);
  return parts;
}

}  // namespace recmill
