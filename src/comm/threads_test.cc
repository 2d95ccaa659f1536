// SPDX-License-Identifier: Apache-2.0
#include "comm/threads.h"

#include <gtest/gtest.h>

#include <thread>

#include "comm/communicator_contract.h"
#include "comm/testing/delayed_communicator.h"

namespace recmill {
namespace {

struct ThreadsTransport {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    return run_ranks(ranks, body);
  }
  static std::string name(int rank) { return "rank " + std::to_string(rank); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CommunicatorContract, ThreadsTransport);

struct DelayedThreadsTransport : ThreadsTransport {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    return run_ranks(ranks, [&](Communicator& inner) {
      DelayedCommunicator delayed(inner, 5);
      return body(delayed);
    });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(DelayedThreads, CommunicatorContract, DelayedThreadsTransport);

TEST(ThreadsGroup, ends_the_pending_call_of_a_rank_that_aborts_from_another_thread) {
  const ThreadsGroup group(2);
  const auto communicator = group.communicator(1);
  Status pending;
  std::thread waiting([&] { pending = communicator->barrier(); });
  communicator->abort(Status::Failed("the reader stopped"));
  waiting.join();
  EXPECT_EQ(pending.message(), "rank 1: the reader stopped");
}

TEST(ThreadsGroup, keeps_the_first_of_several_failures) {
  const ThreadsGroup group(2);
  group.communicator(1)->abort(Status::Failed("first"));
  group.communicator(0)->abort(Status::Failed("second"));
  EXPECT_EQ(group.communicator(0)->barrier().message(), "rank 1: first");
}

TEST(ThreadsGroup, communicators_outlive_their_group) {
  std::unique_ptr<Communicator> communicator;
  {
    const ThreadsGroup group(1);
    communicator = group.communicator(0);
  }
  EXPECT_TRUE(communicator->barrier().ok());
}

}  // namespace
}  // namespace recmill
