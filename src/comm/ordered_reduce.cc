// SPDX-License-Identifier: Apache-2.0
#include "comm/ordered_reduce.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace recmill {
namespace {

/// What a rank owns of a piece: large enough that a message costs little, small enough that several
/// are under way in a vector of a megabyte.
constexpr int64_t kMessageBytes = 128 << 10;
constexpr int64_t kUnderWay = 4;
/// The same inside a host, where pieces should stay in the second-level cache.
constexpr int64_t kWindowBytes = 128 << 10;

/// Group of the messages of an exchange that bring results; those of pieces come after it.
constexpr int kResults = 0;

}  // namespace

template <typename T>
OrderedReduce<T>::OrderedReduce(Communicator& communicator, int slices, ThreadPool& pool)
    : communicator_(communicator), slices_(slices), pool_(pool) {
  const int ranks = communicator.ranks();
  RECMILL_CHECK(is_subtree({0, slices}) && ranks <= slices,
                std::to_string(slices) + " slices, " + std::to_string(ranks) + " ranks");
  for (int rank = 0; rank < ranks; ++rank)
    trees_.push_back(subtrees(slices_of_rank(rank, ranks, slices)));
  packed_.resize(kUnderWay * ranks);
  incoming_.resize(kUnderWay * ranks);
}

template <typename T>
Status OrderedReduce<T>::operator()(std::span<const SlicePart<T>> parts, std::span<T> total) {
  const SliceRange own = slices_of_rank(communicator_.rank(), communicator_.ranks(), slices_);
  for (const SlicePart<T>& part : parts)
    RECMILL_CHECK(part.slices.begin >= own.begin && part.slices.end <= own.end);
  if (communicator_.ranks() == 1) {
    tree_sum<T>({0, slices_}, parts, total, pool_);
    return {};
  }
  return communicator_.shares_memory() ? reduce_by_window(parts, total)
                                       : reduce_by_messages(parts, total);
}

// What `rank` owns, cut into as many pieces for every rank.
template <typename T>
typename OrderedReduce<T>::Range OrderedReduce<T>::piece_of(int rank, int64_t step,
                                                            int64_t size) const {
  const int64_t ranks = communicator_.ranks(), count = steps(size);
  const int64_t begin = size * rank / ranks, elements = size * (rank + 1) / ranks - begin;
  return {begin + elements * step / count, begin + elements * (step + 1) / count};
}

template <typename T>
int64_t OrderedReduce<T>::steps(int64_t size) const {
  const int64_t bytes = communicator_.shares_memory() ? kWindowBytes : kMessageBytes;
  const int64_t elements = bytes / static_cast<int64_t>(sizeof(T)) * communicator_.ranks();
  return std::max<int64_t>(1, (size + elements - 1) / elements);
}

// This rank's sum over one of its largest subtrees.
template <typename T>
void OrderedReduce<T>::sum_own(size_t tree, std::span<const SlicePart<T>> parts, Range range,
                               T* out) {
  const SliceRange whole = trees_[communicator_.rank()][tree];
  std::vector<SlicePart<T>> inside;
  for (const SlicePart<T>& part : parts) {
    if (part.slices.begin >= whole.begin && part.slices.end <= whole.end)
      inside.push_back({part.slices, part.data + range.begin});
  }
  tree_sum<T>(whole, inside, std::span(out, range.size()), pool_);
}

// The order of messages between two ranks: pieces as they begin, and after each end its result.
template <typename T>
Status OrderedReduce<T>::reduce_by_messages(std::span<const SlicePart<T>> parts,
                                            std::span<T> total) {
  const int64_t size = static_cast<int64_t>(total.size()), count = steps(size);
  RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator_.exchange(total.size_bytes()));
  for (int64_t step = 0; step < std::min(kUnderWay, count); ++step)
    RECMILL_RETURN_IF_ERROR(begin_piece(*exchange, parts, step, size));
  for (int64_t step = 0; step < count; ++step) {
    RECMILL_RETURN_IF_ERROR(finish_piece(*exchange, parts, step, total));
    if (step + kUnderWay < count)
      RECMILL_RETURN_IF_ERROR(begin_piece(*exchange, parts, step + kUnderWay, size));
  }
  return exchange->wait(kResults);
}

template <typename T>
std::span<T> OrderedReduce<T>::slot(std::vector<std::vector<T>>& slots, int rank, int64_t step,
                                    size_t elements) {
  auto& memory = slots[(step % kUnderWay) * communicator_.ranks() + rank];
  memory.resize(std::max(memory.size(), elements));
  return std::span(memory).first(elements);
}

// Each rank begins with another one, so that not all send to the same.
template <typename T>
Status OrderedReduce<T>::begin_piece(Exchange& exchange, std::span<const SlicePart<T>> parts,
                                     int64_t step, int64_t size) {
  const int ranks = communicator_.ranks(), rank = communicator_.rank();
  const int group = static_cast<int>(1 + step % kUnderWay);
  const auto& own_trees = trees_[rank];
  const Range own = piece_of(rank, step, size);
  for (int i = 1; i < ranks; ++i) {
    const int from = (rank + ranks - i) % ranks;
    const auto memory = slot(incoming_, from, step, trees_[from].size() * own.size());
    RECMILL_RETURN_IF_ERROR(exchange.receive(std::as_writable_bytes(memory), from, group));
  }
  const bool stands = own_trees.size() == 1 && parts.size() == 1 && parts[0].slices == own_trees[0];
  for (int i = 1; i < ranks; ++i) {
    const int to = (rank + i) % ranks;
    const Range range = piece_of(to, step, size);
    std::span<const T> sums;
    if (stands) {
      sums = {parts[0].data + range.begin, static_cast<size_t>(range.size())};
    } else {
      const auto memory = slot(packed_, to, step, own_trees.size() * range.size());
      for (size_t tree = 0; tree < own_trees.size(); ++tree)
        sum_own(tree, parts, range, memory.data() + tree * range.size());
      sums = memory;
    }
    RECMILL_RETURN_IF_ERROR(exchange.send(std::as_bytes(sums), to, group));
  }
  return {};
}

// The tree over what all ranks sent of this rank's elements, and its result to all.
template <typename T>
Status OrderedReduce<T>::finish_piece(Exchange& exchange, std::span<const SlicePart<T>> parts,
                                      int64_t step, std::span<T> total) {
  const int ranks = communicator_.ranks(), rank = communicator_.rank();
  const int64_t size = static_cast<int64_t>(total.size());
  const Range own = piece_of(rank, step, size);
  for (int i = 1; i < ranks; ++i) {
    const int from = (rank + ranks - i) % ranks;
    const Range range = piece_of(from, step, size);
    RECMILL_RETURN_IF_ERROR(exchange.receive(
        std::as_writable_bytes(total.subspan(range.begin, range.size())), from, kResults));
  }
  RECMILL_RETURN_IF_ERROR(exchange.wait(static_cast<int>(1 + step % kUnderWay)));
  const std::span<T> result = total.subspan(own.begin, own.size());
  add_all(parts, own, result, [&](int from, size_t tree) {
    const auto memory = slot(incoming_, from, step, trees_[from].size() * own.size());
    return memory.data() + tree * own.size();
  });
  for (int i = 1; i < ranks; ++i)
    RECMILL_RETURN_IF_ERROR(exchange.send(std::as_bytes(result), (rank + i) % ranks, kResults));
  return {};
}

// Between two fences each rank adds what it owns of one piece, copies the results of the piece
// before, and stores its parts of the next one. What it stores is in the other half of the
// window than what others load.
template <typename T>
Status OrderedReduce<T>::reduce_by_window(std::span<const SlicePart<T>> parts, std::span<T> total) {
  const int ranks = communicator_.ranks();
  const int64_t size = static_cast<int64_t>(total.size()), count = steps(size);
  if (window_ == nullptr) {
    size_t trees = 0;
    for (const auto& of_rank : trees_) trees = std::max(trees, of_rank.size());
    const size_t places = trees * ranks + 1;
    RECMILL_ASSIGN_OR_RETURN(window_, communicator_.window(2 * places * kWindowBytes));
  }
  put_parts(parts, 0, size);
  for (int64_t step = 0; step <= count; ++step) {
    RECMILL_RETURN_IF_ERROR(window_->fence(total.size_bytes()));
    if (step < count) add_parts(parts, step, total);
    if (step + 1 < count) put_parts(parts, step + 1, size);
    if (step == 0) continue;
    for (int from = 0; from < ranks; ++from) {
      const Range range = piece_of(from, step - 1, size);
      if (from != communicator_.rank() && range.size() > 0)
        std::copy_n(shared(from, step - 1, 0), range.size(), total.data() + range.begin);
    }
  }
  count_window(size);
  return {};
}

// What messages would have moved.
template <typename T>
void OrderedReduce<T>::count_window(int64_t size) {
  const int ranks = communicator_.ranks(), rank = communicator_.rank();
  const int64_t own = size * (rank + 1) / ranks - size * rank / ranks;
  int64_t sent = own * (ranks - 1), received = 0;
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    const int64_t theirs = size * (other + 1) / ranks - size * other / ranks;
    sent += theirs * std::ssize(trees_[rank]);
    received += theirs + own * std::ssize(trees_[other]);
  }
  window_->count(sent * sizeof(T), received * sizeof(T));
}

// Place 0 is of the rank's results; the others of its sums for each owner and subtree.
template <typename T>
T* OrderedReduce<T>::shared(int rank, int64_t step, size_t place) const {
  const size_t half = window_->of(rank).size() / 2;
  return reinterpret_cast<T*>(window_->of(rank).data() + (step % 2) * half + place * kWindowBytes);
}

template <typename T>
void OrderedReduce<T>::put_parts(std::span<const SlicePart<T>> parts, int64_t step, int64_t size) {
  const int rank = communicator_.rank();
  const size_t trees = trees_[rank].size();
  for (int owner = 0; owner < communicator_.ranks(); ++owner) {
    if (owner == rank) continue;
    for (size_t tree = 0; tree < trees; ++tree)
      sum_own(tree, parts, piece_of(owner, step, size),
              shared(rank, step, 1 + owner * trees + tree));
  }
}

template <typename T>
void OrderedReduce<T>::add_parts(std::span<const SlicePart<T>> parts, int64_t step,
                                 std::span<T> total) {
  const int rank = communicator_.rank();
  const Range own = piece_of(rank, step, static_cast<int64_t>(total.size()));
  const std::span<T> result = total.subspan(own.begin, own.size());
  add_all(parts, own, result, [&](int from, size_t tree) {
    return shared(from, step, 1 + rank * trees_[from].size() + tree);
  });
  std::ranges::copy(result, shared(rank, step, 0));
}

// The tree over this rank's parts and what others gave.
template <typename T>
template <typename Given>
void OrderedReduce<T>::add_all(std::span<const SlicePart<T>> parts, Range own, std::span<T> result,
                               const Given& given) {
  std::vector<SlicePart<T>> sums;
  for (int from = 0; from < communicator_.ranks(); ++from) {
    if (from == communicator_.rank()) {
      for (const SlicePart<T>& part : parts) sums.push_back({part.slices, part.data + own.begin});
      continue;
    }
    for (size_t tree = 0; tree < trees_[from].size(); ++tree)
      sums.push_back({trees_[from][tree], given(from, tree)});
  }
  tree_sum<T>({0, slices_}, sums, result, pool_);
}

template class OrderedReduce<float>;
template class OrderedReduce<double>;

}  // namespace recmill
