// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "comm/shard_tree.h"
#include "device/buffer.h"

namespace recmill {

/// The sums of one rank's shards, added by the tree of shard_tree.h while shards are still being
/// computed: whoever finishes the second half of a subtree adds the two. Few vectors are then
/// alive, and they are written and read again while a cache still holds them. The bits are those of
/// tree_sum() over all shards, at any number of threads and in any order.
///
/// The upper half of the tree is left to tree_sum() or OrderedReduce, which add on all threads.
class SubtreeSums {
 public:
  /// `own`: the rank's shards. Allocates as shards ask for it.
  SubtreeSums(ShardRange own, int64_t elements) : own_(own), elements_(elements) {}

  /// What a vector takes of the machine.
  static int64_t vector_bytes(int64_t elements);

  /// Takes all vectors back: the start of an iteration.
  void reset();
  /// A vector [elements] for the sum of one shard, with old content. Any thread. Fails, naming what
  /// it is for, when the machine does not have the memory.
  Result<float*> take();
  /// `sum`, from take(), is the sum of `shard` now. Any thread; each shard once.
  void put(int shard, float* sum);
  /// After all put(): what stands now, ascending; valid until reset().
  std::vector<ShardPart<float>> parts() const;

 private:
  const ShardRange own_;
  const int64_t elements_;
  std::mutex mutex_;
  std::vector<Buffer> owned_;                 // guarded by mutex_
  std::vector<float*> free_;                  // guarded by mutex_; last in, first out
  std::map<int, ShardPart<float>> standing_;  // guarded by mutex_; by first shard
};

}  // namespace recmill
