// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "comm/gpu/gpu_exchange_contract.h"
#include "comm/gpu/staged_gpu_exchange.h"
#include "comm/gpu/window_gpu_exchange.h"
#include "comm/testing/delayed_communicator.h"
#include "comm/threads.h"
#include "device/gpu/testing/test_gpu.h"

namespace recmill {
namespace {

template <class Way>
struct Fixture {
  static Status run(int ranks, const std::function<Status(GpuExchangeRank&)>& body) {
    return run_ranks(ranks, [&](Communicator& inner) -> Status {
      DelayedCommunicator hosts(inner, 3);
      Gpu gpu(testing::test_driver(), {});
      RECMILL_ASSIGN_OR_RETURN(const auto exchange, Way::make(gpu, hosts));
      GpuExchangeRank rank{hosts, gpu, *exchange};
      return body(rank);
    });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Staged, GpuExchangeContract, Fixture<StagedGpuExchange>);
INSTANTIATE_TYPED_TEST_SUITE_P(Windows, GpuExchangeContract, Fixture<WindowGpuExchange>);

TEST(WindowGpuExchange, SuitsProcessesThatHaveOneGpu) {
  const auto rank = [](int64_t process, std::byte gpu) { return GpuOfProcess{process, {gpu}}; };
  const std::byte none{}, a{1}, b{2};
  EXPECT_TRUE(processes_share_one_gpu(std::vector{rank(7, a), rank(8, a), rank(9, a)}));
  EXPECT_FALSE(processes_share_one_gpu(std::vector{rank(7, a), rank(8, b)}));
  EXPECT_FALSE(processes_share_one_gpu(std::vector{rank(7, a), rank(8, a), rank(7, a)}));
  EXPECT_FALSE(processes_share_one_gpu(std::vector{rank(7, none), rank(8, none)}));
  const Status status = run_ranks(2, [](Communicator& hosts) -> Status {
    Gpu gpu(testing::test_driver(), {});
    RECMILL_ASSIGN_OR_RETURN(const bool suits, WindowGpuExchange::suits(gpu, hosts));
    EXPECT_FALSE(suits) << "they are threads";
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace recmill
