// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "comm/gpu/gpu_exchange_contract.h"
#include "comm/gpu/staged_gpu_exchange.h"
#include "comm/gpu/window_gpu_exchange.h"
#include "comm/testing/delayed_communicator.h"
#include "comm/threads.h"
#include "device/gpu/emulated_driver.h"

namespace recmill {
namespace {

template <class Way>
struct Fixture {
  static Status run(int ranks, const std::function<Status(GpuExchangeRank&)>& body) {
    return run_ranks(ranks, [&](Communicator& inner) -> Status {
      DelayedCommunicator hosts(inner, 3);
      RECMILL_ASSIGN_OR_RETURN(auto driver, make_emulated_driver({}));
      Gpu gpu(std::move(driver), {});
      RECMILL_ASSIGN_OR_RETURN(const auto exchange, Way::make(gpu, hosts));
      GpuExchangeRank rank{hosts, gpu, *exchange};
      return body(rank);
    });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Staged, GpuExchangeContract, Fixture<StagedGpuExchange>);
INSTANTIATE_TYPED_TEST_SUITE_P(Windows, GpuExchangeContract, Fixture<WindowGpuExchange>);

}  // namespace
}  // namespace recmill
