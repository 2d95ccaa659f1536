// SPDX-License-Identifier: Apache-2.0
#include "stats/gather_counts.h"

#include <gtest/gtest.h>

#include "comm/threads.h"
#include "stats/testing/drawn_lookups.h"

namespace recmill::stats {
namespace {

TEST(GatherCounts, OfPartsIsCountingTogether) {
  constexpr int64_t kSamples = 60'000;
  ThreadPool pool(2);
  const AccessCounts together = counted(0, kSamples, 9000, 2).finish(pool);
  for (const int ranks : {1, 2, 5}) {
    const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
      const int64_t begin = communicator.rank() * kSamples / ranks;
      const int64_t end = (communicator.rank() + 1) * kSamples / ranks;
      AccessCounter counter = counted(begin, end - begin, 7000, 1);
      RECMILL_RETURN_IF_ERROR(gather_counts(counter, communicator));
      if (communicator.rank() == 0) {
        EXPECT_EQ(counter.finish(pool), together);
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace
}  // namespace recmill::stats
