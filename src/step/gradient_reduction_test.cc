// SPDX-License-Identifier: Apache-2.0
#include "step/gradient_reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "comm/testing/delayed_communicator.h"
#include "comm/threads.h"

namespace recmill::train {
namespace {

constexpr int kSlices = 8;

/// Of very different sizes, so that another order of summation gives other bits.
std::vector<float> gradient_of(int slice, int iteration, size_t elements) {
  const Random random(5, Purpose::test, static_cast<uint64_t>(iteration));
  std::vector<float> gradient(elements);
  for (size_t i = 0; i < elements; ++i) {
    const auto words = random.block(static_cast<uint64_t>(slice) * elements + i);
    gradient[i] = static_cast<float>(
        std::ldexp(Random::unit(words[0]) - 0.5, static_cast<int>(words[1] % 30)));
  }
  return gradient;
}

TEST(GradientReduction, has_the_bits_of_the_tree_whatever_its_communicator_does_meanwhile) {
  constexpr size_t kElements = 50'021;
  for (const int ranks : {2, 3, 8}) {
    const Status status = run_ranks(ranks, [&](Communicator& plain) -> Status {
      DelayedCommunicator communicator(plain, 7, /*shares_memory=*/ranks != 3);
      RECMILL_ASSIGN_OR_RETURN(const auto reduction,
                               GradientReduction::create(communicator, kSlices));
      const SliceRange own = slices_of_rank(communicator.rank(), ranks, kSlices);
      std::vector<float> total(kElements), expected(kElements);
      ThreadPool pool(1);
      for (int iteration = 0; iteration < 5; ++iteration) {
        std::vector<std::vector<float>> gradients;
        std::vector<SlicePart<float>> all;
        for (int slice = 0; slice < kSlices; ++slice) {
          gradients.push_back(gradient_of(slice, iteration, kElements));
          all.push_back({{slice, slice + 1}, gradients.back().data()});
        }
        reduction->begin({all.begin() + own.begin, all.begin() + own.end}, total);
        RECMILL_RETURN_IF_ERROR(communicator.barrier());
        RECMILL_RETURN_IF_ERROR(communicator.all_gather({}).status());
        RECMILL_ASSIGN_OR_RETURN(const auto outcome, reduction->finish());
        EXPECT_GE(outcome.traffic.sent, kElements / ranks * sizeof(float));
        EXPECT_GE(outcome.seconds, 0.0);
        tree_sum<float>({0, kSlices}, all, expected, pool);
        EXPECT_EQ(std::memcmp(total.data(), expected.data(), kElements * sizeof(float)), 0)
            << "iteration " << iteration << ", " << ranks << " ranks";
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(GradientReduction, ends_when_a_rank_that_does_not_begin_it_aborts) {
  const Status status = run_ranks(3, [](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const auto reduction,
                             GradientReduction::create(communicator, kSlices));
    if (communicator.rank() == 2) return Status::Failed("row 7 is not finite");
    std::vector<float> total(1000);
    reduction->begin({}, total);
    const auto outcome = reduction->finish();
    EXPECT_EQ(outcome.status().message(), "rank 2: row 7 is not finite");
    return outcome.status();
  });
  EXPECT_EQ(status.message(), "rank 2: row 7 is not finite");
}

}  // namespace
}  // namespace recmill::train
