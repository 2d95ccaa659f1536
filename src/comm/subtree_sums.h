// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "comm/slice_tree.h"
#include "device/buffer.h"

namespace recmill {

/// The sums of one rank's slices, added by the tree of slice_tree.h while slices are still being
/// computed: whoever finishes the second half of a subtree adds the two. Few vectors are then
/// alive, and they are written and read again while a cache still holds them. The bits are those of
/// tree_sum() over all slices, at any number of threads and in any order.
///
/// The upper half of the tree is left to tree_sum() or OrderedReduce, which add on all threads.
class SubtreeSums {
 public:
  /// `own`: the rank's slices. Allocates as slices ask for it.
  SubtreeSums(SliceRange own, int64_t elements) : own_(own), elements_(elements) {}

  /// What a vector takes of the machine.
  static int64_t vector_bytes(int64_t elements);

  /// Takes all vectors back: the start of an iteration.
  void reset();
  /// A vector [elements] for the sum of one slice, with old content. Any thread. Fails, naming what
  /// it is for, when the machine does not have the memory.
  Result<float*> take();
  /// `sum`, from take(), is the sum of `slice` now. Any thread; each slice once.
  void put(int slice, float* sum);
  /// After all put(): the sums that are left, ascending; valid until reset().
  std::vector<SlicePart<float>> parts() const;

 private:
  const SliceRange own_;
  const int64_t elements_;
  std::mutex mutex_;
  std::vector<Buffer> owned_;                 // guarded by mutex_
  std::vector<float*> free_;                  // guarded by mutex_; last in, first out
  std::map<int, SlicePart<float>> unpaired_;  // guarded by mutex_; by first slice
};

}  // namespace recmill
