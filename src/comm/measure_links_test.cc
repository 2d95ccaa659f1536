// SPDX-License-Identifier: Apache-2.0
#include "comm/measure_links.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "comm/message_communicator.h"
#include "comm/testing/simulated_network.h"
#include "comm/threads.h"

namespace recmill {
namespace {

void expect_links(const std::vector<std::vector<LinkSpec>>& of) {
  const size_t ranks = of.size();
  for (size_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(of[rank], of[0]);
  ASSERT_EQ(of[0].size(), ranks * ranks);
  for (size_t to = 0; to < ranks; ++to) {
    for (size_t from = 0; from < ranks; ++from) {
      const LinkSpec& link = of[0][to * ranks + from];
      EXPECT_EQ(link.byte_seconds > 0, to != from);
      EXPECT_EQ(link.message_seconds > 0, to != from);
    }
  }
}

TEST(MeasureLinks, every_rank_hears_the_same_of_each_pair) {
  for (const int ranks : {1, 2, 4}) {
    std::vector<std::vector<LinkSpec>> of(ranks);
    const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
      RECMILL_ASSIGN_OR_RETURN(of[communicator.rank()], measure_links(communicator));
      return {};
    });
    ASSERT_TRUE(status.ok()) << status.message();
    expect_links(of);
  }
}

TEST(MeasureLinks, goes_by_messages_as_well) {
  constexpr int kRanks = 3;
  const SimulatedNetwork network(kRanks, 5, false);
  std::vector<std::vector<LinkSpec>> of(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      MessageCommunicator communicator(network.link(rank), {"a", "b", "c"}, 60.0);
      auto links = measure_links(communicator, 4096);
      EXPECT_TRUE(links.ok()) << links.status().message();
      if (links.ok()) of[rank] = *std::move(links);
    });
  }
  for (auto& thread : threads) thread.join();
  expect_links(of);
}

}  // namespace
}  // namespace recmill
