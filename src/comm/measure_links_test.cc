// SPDX-License-Identifier: Apache-2.0
#include "comm/measure_links.h"

#include <gtest/gtest.h>

#include "comm/threads.h"

namespace recmill {
namespace {

TEST(MeasureLinks, every_rank_hears_the_same_of_each_pair) {
  for (const int ranks : {1, 2, 4}) {
    std::vector<std::vector<LinkSpec>> of(ranks);
    const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
      RECMILL_ASSIGN_OR_RETURN(of[communicator.rank()], measure_links(communicator));
      return {};
    });
    ASSERT_TRUE(status.ok()) << status.message();
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(of[rank], of[0]);
    ASSERT_EQ(of[0].size(), static_cast<size_t>(ranks * ranks));
    for (int to = 0; to < ranks; ++to)
      for (int from = 0; from < ranks; ++from) {
        const LinkSpec& link = of[0][to * ranks + from];
        EXPECT_EQ(link.byte_seconds > 0, to != from);
        EXPECT_EQ(link.message_seconds > 0, to != from);
      }
  }
}

}  // namespace
}  // namespace recmill
