// SPDX-License-Identifier: Apache-2.0
#include "comm/slice_tree.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/status.h"
#include "comm/add_vectors.h"

namespace recmill {
namespace {

constexpr int64_t kTile = 4096;  // elements; the scratch of a tile stays in the first-level cache
constexpr int kMaxLevels = 12;   // 4,096 slices

int log2_of(int power) {
  return std::countr_zero(static_cast<unsigned>(power));
}

// Adds the parts of one tile. Scratch of level l holds the right half of a subtree of 2^l slices
// until it is added.
template <typename T>
class TileSum {
 public:
  TileSum(std::span<const SlicePart<T>> parts, int64_t begin, int64_t count)
      : parts_(parts), begin_(begin), count_(count) {}

  // Writes the sum over `range` to `out`.
  void write(SliceRange range, T* out) {
    const T* sum = fold(range, out);
    if (sum == nullptr) {
      std::fill_n(out, count_, T{0});
    } else if (sum != out) {
      std::copy_n(sum, count_, out);
    }
  }

 private:
  // Where the sum over `range` is: in `out`, or in the one part it consists of; null: no part.
  const T* fold(SliceRange range, T* out) {
    if (next_ == parts_.size() || parts_[next_].slices.begin >= range.end) return nullptr;
    if (parts_[next_].slices == range) return parts_[next_++].data + begin_;
    if (add_equal_parts(8, range, out) || add_equal_parts(4, range, out)) return out;
    const int middle = range.begin + range.size() / 2;
    T* scratch = scratch_[log2_of(range.size())];
    const T* left = fold({range.begin, middle}, out);
    const T* right = fold({middle, range.end}, left == out ? scratch : out);
    if (left == nullptr) return right;
    if (right == nullptr) return left;
    const T* const both[] = {left, right};
    add_vectors(both, 2, out, count_);
    return out;
  }

  // One pass, where `range` consists of n parts of one size (4 times the rate of a pass a pair).
  bool add_equal_parts(int n, SliceRange range, T* out) {
    if (range.size() < n || next_ + static_cast<size_t>(n) > parts_.size()) return false;
    const int size = range.size() / n;
    const T* data[8];
    for (int i = 0; i < n; ++i) {
      const auto& part = parts_[next_ + static_cast<size_t>(i)];
      if (part.slices != SliceRange{range.begin + i * size, range.begin + (i + 1) * size}) {
        return false;
      }
      data[i] = part.data + begin_;
    }
    next_ += static_cast<size_t>(n);
    add_vectors(data, n, out, count_);
    return true;
  }

  std::span<const SlicePart<T>> parts_;
  const int64_t begin_, count_;
  size_t next_ = 0;  // first part not yet taken
  T scratch_[kMaxLevels + 1][kTile];
};

template <typename T>
void check(SliceRange whole, std::span<const SlicePart<T>> parts) {
  RECMILL_CHECK(is_subtree(whole) && log2_of(whole.size()) <= kMaxLevels);
  int end = whole.begin;
  for (const auto& part : parts) {
    RECMILL_CHECK(
        is_subtree(part.slices) && part.slices.begin >= end && part.slices.end <= whole.end,
        "slices [" + std::to_string(part.slices.begin) + ", " + std::to_string(part.slices.end) +
            ")");
    end = part.slices.end;
  }
}

}  // namespace

bool is_subtree(SliceRange range) {
  return range.begin >= 0 && range.end > range.begin &&
         std::has_single_bit(static_cast<unsigned>(range.size())) &&
         range.begin % range.size() == 0;
}

SliceRange slices_of_rank(int rank, int ranks, int slices) {
  return {rank * slices / ranks, (rank + 1) * slices / ranks};
}

std::vector<SliceRange> subtrees(SliceRange range) {
  std::vector<SliceRange> result;
  while (range.size() > 0) {
    const int fits = static_cast<int>(std::bit_floor(static_cast<unsigned>(range.size())));
    const int aligned = range.begin == 0 ? fits : range.begin & -range.begin;
    const int size = std::min(fits, aligned);
    result.push_back({range.begin, range.begin + size});
    range.begin += size;
  }
  return result;
}

template <typename T>
void tree_sum(SliceRange whole, std::span<const SlicePart<T>> parts, std::span<T> out,
              ThreadPool& pool) {
  check(whole, parts);
  pool.run_ranges(static_cast<int64_t>(out.size()), kTile, [&](int64_t begin, int64_t end) {
    TileSum<T>(parts, begin, end - begin).write(whole, out.data() + begin);
  });
}

template <typename T>
void tree_sum(SliceRange whole, std::span<const SlicePart<T>> parts, std::span<T> out,
              int64_t first) {
  check(whole, parts);
  const int64_t elements = static_cast<int64_t>(out.size());
  for (int64_t begin = 0; begin < elements; begin += kTile) {
    TileSum<T>(parts, first + begin, std::min(kTile, elements - begin))
        .write(whole, out.data() + begin);
  }
}

template void tree_sum(SliceRange, std::span<const SlicePart<float>>, std::span<float>,
                       ThreadPool&);
template void tree_sum(SliceRange, std::span<const SlicePart<double>>, std::span<double>,
                       ThreadPool&);
template void tree_sum(SliceRange, std::span<const SlicePart<float>>, std::span<float>, int64_t);
template void tree_sum(SliceRange, std::span<const SlicePart<double>>, std::span<double>, int64_t);

}  // namespace recmill
