// SPDX-License-Identifier: Apache-2.0
#include "comm/ordered_reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "comm/testing/delayed_communicator.h"
#include "comm/threads.h"

namespace recmill {
namespace {

// Slice sums of very different sizes, so that another order of summation gives other bits.
template <typename T>
std::vector<T> slice_sums(int slice, int64_t elements) {
  const Random random(23, Purpose::test, slice);
  std::vector<T> sums(elements);
  for (int64_t i = 0; i < elements; ++i) {
    const auto words = random.block(i);
    sums[i] =
        static_cast<T>(std::ldexp(Random::unit(words[0]) - 0.5, static_cast<int>(words[1] % 40)));
  }
  return sums;
}

template <typename T>
std::vector<T> plain_tree(int begin, int end, int64_t elements) {
  if (end - begin == 1) return slice_sums<T>(begin, elements);
  auto left = plain_tree<T>(begin, (begin + end) / 2, elements);
  const auto right = plain_tree<T>((begin + end) / 2, end, elements);
  for (int64_t i = 0; i < elements; ++i) left[i] += right[i];
  return left;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
Status reduce_and_compare(Communicator& inner, int slices, bool whole_subtrees, bool one_host) {
  DelayedCommunicator communicator(inner, 7, one_host);
  ThreadPool pool(2);
  OrderedReduce<T> reduce(communicator, slices, pool);
  const SliceRange own = slices_of_rank(communicator.rank(), communicator.ranks(), slices);
  // The longest goes in many pieces: more than are under way at a time, and no whole number of
  // them.
  const int64_t long_one = slices == 8 && communicator.ranks() == 3 ? 600'003 : 9'001;
  for (int64_t elements : {int64_t{1}, int64_t{0}, int64_t{5}, int64_t{3000},
                           long_one}) {  // the same object takes any size
    std::vector<std::vector<T>> sums;
    std::vector<SlicePart<T>> parts;
    if (whole_subtrees) {
      for (SliceRange tree : subtrees(own)) {
        sums.push_back(plain_tree<T>(tree.begin, tree.end, elements));
        parts.push_back({tree, sums.back().data()});
      }
    } else {
      for (int slice = own.begin; slice < own.end; ++slice) {
        sums.push_back(slice_sums<T>(slice, elements));
        parts.push_back({{slice, slice + 1}, sums.back().data()});
      }
    }
    std::vector<T> total(elements, T{-1});
    RECMILL_RETURN_IF_ERROR(reduce(parts, total));
    EXPECT_TRUE(same_bits(total, plain_tree<T>(0, slices, elements)))
        << slices << " slices, " << communicator.ranks() << " ranks, " << elements << " elements";
  }
  return {};
}

TEST(OrderedReduce, gives_the_bits_of_the_tree_at_every_number_of_ranks) {
  for (int slices : {1, 2, 4, 8, 16}) {
    for (int ranks = 1; ranks <= slices; ++ranks) {
      for (int way : {0, 1, 2, 3}) {
        const bool whole_subtrees = way % 2 == 1, one_host = way >= 2;
        const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
          RECMILL_RETURN_IF_ERROR(
              reduce_and_compare<float>(communicator, slices, whole_subtrees, one_host));
          return reduce_and_compare<double>(communicator, slices, whole_subtrees, one_host);
        });
        EXPECT_TRUE(status.ok()) << status.message();
      }
    }
  }
}

TEST(OrderedReduce, counts_slices_without_a_part_as_zeros) {
  const std::vector<float> sums = slice_sums<float>(5, 100);
  const Status status = run_ranks(4, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    OrderedReduce<float> reduce(communicator, 8, pool);
    std::vector<SlicePart<float>> parts;
    if (communicator.rank() == 2) parts.push_back({{5, 6}, sums.data()});
    std::vector<float> total(100, -1.0f);
    RECMILL_RETURN_IF_ERROR(reduce(parts, total));
    EXPECT_TRUE(same_bits(total, sums));
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(OrderedReduce, moves_the_bytes_of_a_ring) {
  for (bool one_host : {false, true}) {
    const Status status = run_ranks(4, [&](Communicator& inner) -> Status {
      DelayedCommunicator communicator(inner, 7, one_host);
      ThreadPool pool(1);
      OrderedReduce<float> reduce(communicator, 4, pool);
      const std::vector<float> sums = slice_sums<float>(communicator.rank(), 400'000);
      const int rank = communicator.rank();
      const SlicePart<float> part{{rank, rank + 1}, sums.data()};
      std::vector<float> total(sums.size());
      RECMILL_RETURN_IF_ERROR(reduce(std::span(&part, 1), total));
      EXPECT_EQ(communicator.traffic().sent, 2u * 3 * 400'000);  // 2 n (W - 1) / W elements
      EXPECT_EQ(communicator.traffic().received, 2u * 3 * 400'000);
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(OrderedReduce, refuses_vectors_of_different_sizes) {
  for (bool one_host : {false, true}) {
    const Status status = run_ranks(2, [&](Communicator& inner) -> Status {
      DelayedCommunicator communicator(inner, 7, one_host);
      ThreadPool pool(1);
      OrderedReduce<float> reduce(communicator, 2, pool);
      std::vector<float> total(10 + 4 * communicator.rank());
      return reduce({}, total);
    });
    EXPECT_NE(status.message().find("is in another call"), std::string::npos) << status.message();
  }
}

TEST(OrderedReduce, ends_with_the_error_of_a_rank_that_failed) {
  const Status status = run_ranks(3, [&](Communicator& communicator) -> Status {
    if (communicator.rank() == 1) return Status::Failed("no more data");
    ThreadPool pool(1);
    OrderedReduce<float> reduce(communicator, 8, pool);
    std::vector<float> total(10);
    return reduce({}, total);
  });
  EXPECT_EQ(status.message(), "rank 1: no more data");
}

}  // namespace
}  // namespace recmill
