// SPDX-License-Identifier: Apache-2.0
// The only way in which gradients are added over ranks: bitwise the same at every number of ranks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/slice_tree.h"
#include "device/thread_pool.h"

namespace recmill {

/// Adds vectors over S slices and W ranks by the tree of comm/slice_tree.h. Collective. Holds
/// buffers for the pieces that are under way, so keep one for each vector that is reduced every
/// iteration.
template <typename T>
class OrderedReduce {
 public:
  OrderedReduce(Communicator& communicator, int slices, ThreadPool& pool);

  /// `parts`: this rank's sums, each over a subtree inside its slices (slices_of_rank), ascending;
  /// data [total.size()]. Slices without a part count as zeros. `total`, the same size on every
  /// rank, gets the sum over all slices, and overlaps no part. With one rank this is tree_sum()
  /// alone.
  ///
  /// With more: element i belongs to rank floor(i W / n); each rank sends its sums of the largest
  /// subtrees to the owners, who finish the tree and send the results to everybody: 2 n (W - 1) / W
  /// elements a rank and subtree, as a ring. Vectors go in pieces, of which several are under way
  /// while others are added; straight from the part where the rank has one for its subtree, and
  /// straight to `total`. Ranks of one host use a window instead, a piece at a time. After an error
  /// `total` is undefined.
  Status operator()(std::span<const SlicePart<T>> parts, std::span<T> total);

 private:
  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };
  Range piece_of(int rank, int64_t step, int64_t size) const;
  int64_t steps(int64_t size) const;
  void sum_own(size_t tree, std::span<const SlicePart<T>> parts, Range range, T* out);
  template <typename Given>
  void add_all(std::span<const SlicePart<T>> parts, Range own, std::span<T> result,
               const Given& given);

  // Between hosts:
  Status reduce_by_messages(std::span<const SlicePart<T>> parts, std::span<T> total);
  Status begin_piece(Exchange& exchange, std::span<const SlicePart<T>> parts, int64_t step,
                     int64_t size);
  Status finish_piece(Exchange& exchange, std::span<const SlicePart<T>> parts, int64_t step,
                      std::span<T> total);
  std::span<T> slot(std::vector<std::vector<T>>& slots, int rank, int64_t step, size_t elements);

  // Inside a host:
  Status reduce_by_window(std::span<const SlicePart<T>> parts, std::span<T> total);
  void count_window(int64_t size);
  T* shared(int rank, int64_t step, size_t place) const;
  void put_parts(std::span<const SlicePart<T>> parts, int64_t step, int64_t size);
  void add_parts(std::span<const SlicePart<T>> parts, int64_t step, std::span<T> total);

  Communicator& communicator_;
  const int slices_;
  ThreadPool& pool_;
  std::vector<std::vector<SliceRange>> trees_;     // [ranks]: the largest subtrees of each
  std::vector<std::vector<T>> packed_, incoming_;  // [pieces under way * ranks]
  std::unique_ptr<Window> window_;
};

extern template class OrderedReduce<float>;
extern template class OrderedReduce<double>;

}  // namespace recmill
