// SPDX-License-Identifier: Apache-2.0
// The only way in which gradients are added over ranks: bitwise the same at every number of ranks.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/shard_tree.h"
#include "device/pool.h"

namespace recmill {

/// Adds vectors over S shards and W ranks by the tree of comm/shard_tree.h. Collective. Holds
/// buffers for the size it has seen, so keep one for each vector that is reduced every iteration.
template <typename T>
class OrderedReduce {
 public:
  OrderedReduce(Communicator& communicator, int shards, Pool& pool);

  /// `parts`: this rank's sums, each over a subtree inside its shards (shards_of_rank), ascending;
  /// data [total.size()]. Shards without a part count as zeros. `total`, the same size on every
  /// rank, gets the sum over all shards; it may be the data of the first part, and overlaps no
  /// other. With one rank this is tree_sum() alone.
  ///
  /// With more: element i belongs to rank floor(i W / n); each rank sends its sums of the largest
  /// subtrees to the owners (all-to-all), who finish the tree, and everybody collects the results
  /// (all-gather): 2 n (W - 1) / W elements a rank and subtree, as a ring.
  Status operator()(std::span<const ShardPart<T>> parts, std::span<T> total);

 private:
  std::span<const std::byte> pack(int to_rank, std::span<const ShardPart<T>> parts, int64_t size);
  Status finish(const Received& received, std::span<T> chunk);

  Communicator& communicator_;
  const int shards_;
  Pool& pool_;
  std::vector<ShardRange> own_;           // the largest subtrees of this rank's shards
  std::vector<std::vector<T>> outgoing_;  // [ranks][own subtrees * chunk]
};

extern template class OrderedReduce<float>;
extern template class OrderedReduce<double>;

}  // namespace recmill
