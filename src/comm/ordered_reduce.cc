// SPDX-License-Identifier: Apache-2.0
#include "comm/ordered_reduce.h"

#include <cstring>
#include <string>

namespace recmill {
namespace {

// Elements [begin(r), begin(r + 1)) belong to rank r.
int64_t chunk_begin(int64_t size, int rank, int ranks) {
  return size * rank / ranks;
}

}  // namespace

template <typename T>
OrderedReduce<T>::OrderedReduce(Communicator& communicator, int shards, Pool& pool)
    : communicator_(communicator), shards_(shards), pool_(pool), outgoing_(communicator.ranks()) {
  RECMILL_CHECK(
      is_subtree({0, shards}) && communicator.ranks() <= shards,
      std::to_string(shards) + " shards, " + std::to_string(communicator.ranks()) + " ranks");
  own_ = subtrees(shards_of_rank(communicator.rank(), communicator.ranks(), shards));
}

template <typename T>
Status OrderedReduce<T>::operator()(std::span<const ShardPart<T>> parts, std::span<T> total) {
  const int ranks = communicator_.ranks(), rank = communicator_.rank();
  if (ranks == 1) {
    tree_sum<T>({0, shards_}, parts, total, pool_);
    return {};
  }
  const int64_t size = static_cast<int64_t>(total.size());
  std::vector<std::span<const std::byte>> outgoing;
  outgoing.reserve(ranks);
  for (int to = 0; to < ranks; ++to) outgoing.push_back(pack(to, parts, size));
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator_.all_to_all(outgoing));
  const int64_t begin = chunk_begin(size, rank, ranks), end = chunk_begin(size, rank + 1, ranks);
  const std::span<T> chunk = total.subspan(begin, end - begin);
  RECMILL_RETURN_IF_ERROR(finish(received, chunk));
  RECMILL_ASSIGN_OR_RETURN(const Received all, communicator_.all_gather(std::as_bytes(chunk)));
  if (all.bytes.size() != total.size_bytes()) {
    return Status::Failed(
        "ranks reduce vectors of different sizes: " + std::to_string(total.size_bytes()) + " and " +
        std::to_string(all.bytes.size()) + " bytes");
  }
  if (!all.bytes.empty()) std::memcpy(total.data(), all.bytes.data(), all.bytes.size());
  return {};
}

// This rank's sums over its largest subtrees, of the elements that `to_rank` owns.
template <typename T>
std::span<const std::byte> OrderedReduce<T>::pack(int to_rank, std::span<const ShardPart<T>> parts,
                                                  int64_t size) {
  const int64_t begin = chunk_begin(size, to_rank, communicator_.ranks());
  const int64_t count = chunk_begin(size, to_rank + 1, communicator_.ranks()) - begin;
  auto& buffer = outgoing_[to_rank];
  buffer.resize(own_.size() * count);
  std::vector<ShardPart<T>> inside;
  size_t next = 0;
  for (size_t tree = 0; tree < own_.size(); ++tree) {
    inside.clear();
    for (; next < parts.size() && parts[next].shards.end <= own_[tree].end; ++next) {
      inside.push_back({parts[next].shards, parts[next].data + begin});
    }
    tree_sum<T>(own_[tree], inside, std::span(buffer).subspan(tree * count, count), pool_);
  }
  RECMILL_CHECK(next == parts.size(), "a part outside this rank's shards");
  return std::as_bytes(std::span(buffer));
}

// The tree over what all ranks sent of this rank's elements.
template <typename T>
Status OrderedReduce<T>::finish(const Received& received, std::span<T> chunk) {
  const int ranks = communicator_.ranks();
  std::vector<ShardPart<T>> parts;
  for (int from = 0; from < ranks; ++from) {
    const auto trees = subtrees(shards_of_rank(from, ranks, shards_));
    if (received.from(from).size() != trees.size() * chunk.size_bytes()) {
      return Status::Failed("rank " + std::to_string(from) + " reduces a vector of another size: " +
                            std::to_string(received.from(from).size()) + " bytes for " +
                            std::to_string(trees.size()) + " x " +
                            std::to_string(chunk.size_bytes()));
    }
    const T* data = reinterpret_cast<const T*>(received.from(from).data());
    for (size_t tree = 0; tree < trees.size(); ++tree) {
      parts.push_back({trees[tree], data + tree * chunk.size()});
    }
  }
  tree_sum<T>({0, shards_}, parts, chunk, pool_);
  return {};
}

template class OrderedReduce<float>;
template class OrderedReduce<double>;

}  // namespace recmill
