// SPDX-License-Identifier: Apache-2.0
// Started by an MPI launcher in 8 processes. Every process runs every test; a test of fewer ranks
// runs on the first of them.
#include "comm/mpi/mpi_link.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "comm/communicator_contract.h"
#include "comm/message_communicator.h"
#include "comm/mpi/mpi_world.h"
#include "comm/testing/delayed_communicator.h"
#include "comm/testing/mpi_tests.h"

namespace recmill {
namespace {

MpiWorld* world = nullptr;

/// What rank 0 was told, in all processes.
Status agreed(const Status& status) {
  struct {
    Status::Code code;
    char text[256];
  } told = {status.code(), {}};
  std::strncpy(told.text, status.message().c_str(), sizeof(told.text) - 1);
  MPI_Bcast(&told, sizeof(told), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (told.code == Status::Code::ok) return {};
  return told.code == Status::Code::failed ? Status::Failed(told.text)
                                           : Status::BadRequest(told.text);
}

struct MpiTransport {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    auto communicator = world->communicator(ranks);
    RECMILL_RETURN_IF_ERROR(communicator.status());
    Status outcome;
    if (*communicator != nullptr) {
      outcome = body(**communicator);
      if (!outcome.ok()) {
        (*communicator)->abort(outcome);
        outcome = (*communicator)->barrier();
      }
    }
    return agreed(outcome);
  }
  static std::string name(int rank) {
    return "rank " + std::to_string(rank) + " on " + world->hosts()[rank];
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, CommunicatorContract, MpiTransport);

struct DelayedMpiTransport : MpiTransport {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    return MpiTransport::run(ranks, [&](Communicator& inner) {
      DelayedCommunicator delayed(inner, 5);
      return body(delayed);
    });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(DelayedMpi, CommunicatorContract, DelayedMpiTransport);

/// Every message in many pieces.
struct MpiPiecesTransport {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world->rank() < ranks ? 0 : MPI_UNDEFINED, 0, &some);
    Status outcome;
    if (some != MPI_COMM_NULL) {
      outcome = run_on(some, ranks, body);
      MPI_Comm_free(&some);
    }
    return agreed(outcome);
  }
  static std::string name(int rank) { return MpiTransport::name(rank); }

 private:
  static Status run_on(MPI_Comm of, int ranks, const std::function<Status(Communicator&)>& body) {
    RECMILL_ASSIGN_OR_RETURN(auto link, MpiLink::make(of, /*piece_bytes=*/1000));
    std::vector<std::string> names;
    for (int rank = 0; rank < ranks; ++rank) names.push_back(name(rank));
    MessageCommunicator communicator(std::move(link), std::move(names), 60.0);
    const Status outcome = body(communicator);
    if (outcome.ok()) return {};
    communicator.abort(outcome);
    return communicator.barrier();
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(MpiInPieces, CommunicatorContract, MpiPiecesTransport);

/// All processes' names.
std::vector<std::string> names() {
  std::vector<std::string> all;
  all.reserve(world->ranks());
  for (int rank = 0; rank < world->ranks(); ++rank) all.push_back(MpiTransport::name(rank));
  return all;
}

/// Of all processes.
std::unique_ptr<MessageCommunicator> communicator_of_all(double limit_seconds) {
  auto link = MpiLink::make(MPI_COMM_WORLD);
  if (!link.ok()) return nullptr;
  return std::make_unique<MessageCommunicator>(*std::move(link), names(), limit_seconds);
}

TEST(MpiLink, names_who_does_not_come_within_the_limit) {
  const auto communicator = communicator_of_all(0.25);
  ASSERT_NE(communicator, nullptr);
  if (world->rank() != 3) {
    EXPECT_FALSE(communicator->barrier().ok());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string message = communicator->barrier().message();  // rank 3 has been told
  EXPECT_NE(message.find(": barrier: no answer in 0.25 s from "), std::string::npos) << message;
  EXPECT_NE(message.find(MpiTransport::name(3)), std::string::npos) << message;
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiLink, ranks_that_are_not_in_step_find_out) {
  const auto communicator = communicator_of_all(60.0);
  ASSERT_NE(communicator, nullptr);
  std::byte flag{1};
  if (world->rank() == 5) {
    EXPECT_TRUE(communicator->broadcast(std::span(&flag, 1), 5).ok());
  } else {
    EXPECT_FALSE(communicator->barrier().ok());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string message = communicator->barrier().message();
  const std::string expected = MpiTransport::name(5) +
                               " is in another call: broadcast 0 of 1 bytes from rank 5, "
                               "here barrier 0";
  EXPECT_NE(message.find(expected), std::string::npos) << message;
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiLink, abort_ends_the_pending_call_from_another_thread) {
  auto communicator = world->communicator(2);
  ASSERT_TRUE(communicator.ok());
  if (world->rank() == 1) {
    Status pending;
    std::thread waiting([&] { pending = (*communicator)->barrier(); });
    (*communicator)->abort(Status::Failed("the reader stopped"));
    waiting.join();
    EXPECT_EQ(pending.message(), MpiTransport::name(1) + ": the reader stopped");
  }
  if (world->rank() == 0) {
    EXPECT_EQ((*communicator)->barrier().message(), MpiTransport::name(1) + ": the reader stopped");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace recmill

int main(int argc, char** argv) {
  return recmill::run_mpi_tests(argc, argv, 8, recmill::world);
}
