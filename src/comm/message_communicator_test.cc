// SPDX-License-Identifier: Apache-2.0
#include "comm/message_communicator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <thread>

#include "comm/communicator_contract.h"
#include "comm/testing/simulated_network.h"

namespace recmill {
namespace {

std::vector<std::string> names(int ranks) {
  std::vector<std::string> all;
  all.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) all.push_back("rank " + std::to_string(rank));
  return all;
}

template <uint64_t kSeed, bool kSharesMemory>
struct SimulatedTransport {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    const SimulatedNetwork network(ranks, kSeed, kSharesMemory);
    std::mutex mutex;
    Status first;  // guarded by mutex
    std::vector<std::thread> threads;
    threads.reserve(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        MessageCommunicator communicator(network.link(rank), names(ranks), 60.0);
        Status status = body(communicator);
        if (status.ok()) return;
        communicator.abort(status);
        status = communicator.barrier();
        std::lock_guard lock(mutex);
        if (first.ok()) first = status;
      });
    }
    for (auto& thread : threads) thread.join();
    return first;
  }
  static std::string name(int rank) { return "rank " + std::to_string(rank); }
};
using Simulated = SimulatedTransport<1, false>;
using SimulatedToo = SimulatedTransport<2, false>;
using SimulatedOnOneHost = SimulatedTransport<3, true>;
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, CommunicatorContract, Simulated);
INSTANTIATE_TYPED_TEST_SUITE_P(SimulatedToo, CommunicatorContract, SimulatedToo);
INSTANTIATE_TYPED_TEST_SUITE_P(SimulatedOnOneHost, CommunicatorContract, SimulatedOnOneHost);

TEST(MessageCommunicator, names_a_rank_that_is_cut_off) {
  const SimulatedNetwork network(3, 1, false);
  network.cut(1);
  std::vector<std::thread> threads;
  std::vector<Status> outcomes(3);
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      MessageCommunicator communicator(network.link(rank), names(3), 0.25);
      outcomes[rank] = communicator.barrier();
    });
  }
  for (auto& thread : threads) thread.join();
  for (int rank : {0, 2}) {
    EXPECT_NE(outcomes[rank].message().find("no answer in 0.25 s from rank 1"), std::string::npos)
        << outcomes[rank].message();
  }
}

}  // namespace
}  // namespace recmill
