// SPDX-License-Identifier: Apache-2.0
// What NcclCommunicator does, over the stand-in of NCCL between emulated GPUs.
#include "comm/nccl/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "comm/communicator_contract.h"
#include "comm/gpu/gpu_exchange_contract.h"
#include "comm/message_communicator.h"
#include "comm/nccl/emulated_nccl.h"
#include "comm/nccl/nccl_gpu_exchange.h"
#include "comm/nccl/nccl_world.h"
#include "comm/testing/delayed_communicator.h"
#include "comm/testing/simulated_network.h"
#include "comm/threads.h"
#include "device/gpu/emulated_driver.h"

namespace recmill {
namespace {

using ::testing::HasSubstr;

Result<std::unique_ptr<Gpu>> emulated_gpu(int) {
  RECMILL_ASSIGN_OR_RETURN(auto driver, make_emulated_driver({}));
  return std::make_unique<Gpu>(std::move(driver), GpuOptions{});
}

Status run_nccl(int ranks, const nccl::Api& api, const NcclOptions& options,
                const std::function<Status(Communicator&)>& body) {
  return NcclWorld(std::make_unique<ThreadsWorld>(), {api, &emulated_gpu, options})
      .run(ranks, body);
}

template <size_t kPieceBytes>
struct NcclTransport {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    return run_nccl(ranks, emulated_nccl(), {60, kPieceBytes}, body);
  }
  static std::string name(int rank) { return "rank " + std::to_string(rank); }
};
using Nccl = NcclTransport<NcclOptions().piece_bytes>;
using NcclInPieces = NcclTransport<1000>;
INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, CommunicatorContract, Nccl);
INSTANTIATE_TYPED_TEST_SUITE_P(NcclInPieces, CommunicatorContract, NcclInPieces);

/// Over hosts that come late, on a network on which failures are heard of late.
struct NcclOverMessages : Nccl {
  static Status run(int ranks, const std::function<Status(Communicator&)>& body) {
    const SimulatedNetwork network(ranks, 4, /*shares_memory=*/false);
    std::vector<std::string> names;
    for (int rank = 0; rank < ranks; ++rank) names.push_back(name(rank));
    std::mutex mutex;
    Status first;  // guarded by mutex
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        MessageCommunicator hosts(network.link(rank), names, 60.0);
        DelayedCommunicator delayed(hosts, 5);
        Status status = run_rank(delayed, body);
        if (status.ok()) return;
        hosts.abort(status);
        status = hosts.barrier();
        const std::lock_guard lock(mutex);
        if (first.ok()) first = status;
      });
    }
    for (auto& thread : threads) thread.join();
    return first;
  }

 private:
  static Status run_rank(Communicator& hosts, const std::function<Status(Communicator&)>& body) {
    RECMILL_ASSIGN_OR_RETURN(auto gpu, emulated_gpu(0));
    RECMILL_ASSIGN_OR_RETURN(const auto communicator,
                             NcclCommunicator::make(emulated_nccl(), std::move(gpu),
                                                    {std::shared_ptr<void>(), &hosts}, {60}));
    const Status status = body(*communicator);
    if (!status.ok()) communicator->abort(status);
    return status;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(NcclOverMessages, CommunicatorContract, NcclOverMessages);

// ---- between GPUs' memory

/// A rank with memory of its GPU.
struct GpuRank {
  static Status run(int ranks, double limit_seconds, const std::function<Status(GpuRank&)>& body,
                    const GpuOptions& options = {}) {
    return run_ranks(ranks, [&](Communicator& hosts) -> Status {
      RECMILL_ASSIGN_OR_RETURN(auto driver, make_emulated_driver({}));
      const auto gpu = std::make_shared<Gpu>(std::move(driver), options);
      RECMILL_ASSIGN_OR_RETURN(auto stream, gpu->open_stream());
      RECMILL_ASSIGN_OR_RETURN(
          auto communicator,
          NcclCommunicator::make(emulated_nccl(), gpu, {std::shared_ptr<void>(), &hosts},
                                 {limit_seconds}));
      GpuRank rank{hosts, *gpu, *communicator, stream};
      const Status status = body(rank);
      if (!status.ok()) communicator->abort(status);
      return status;
    });
  }

  Communicator& hosts;
  Gpu& gpu;
  NcclCommunicator& communicator;
  GpuStream& stream;
};

struct NcclExchangeFixture {
  static Status run(int ranks, const std::function<Status(GpuExchangeRank&)>& body) {
    return GpuRank::run(ranks, 60, [&](GpuRank& of) -> Status {
      NcclGpuExchange exchange(of.gpu, of.communicator);
      GpuExchangeRank rank{of.hosts, of.gpu, exchange};
      return body(rank);
    });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, GpuExchangeContract, NcclExchangeFixture);

TEST(NcclCommunicator, moves_what_a_stream_has_made_to_what_it_goes_on_with) {
  constexpr int kRanks = 3, kCount = 1000;
  const Status status = GpuRank::run(kRanks, 60, [&](GpuRank& of) -> Status {
    const int own = of.communicator.rank();
    constexpr size_t kPiece = kCount * sizeof(int);
    RECMILL_ASSIGN_OR_RETURN(auto host, of.gpu.allocate_pinned(kRanks * kPiece, "host"));
    RECMILL_ASSIGN_OR_RETURN(auto from, of.gpu.allocate(kRanks * kPiece, "from"));
    RECMILL_ASSIGN_OR_RETURN(auto to, of.gpu.allocate(kRanks * kPiece, "to"));
    RECMILL_ASSIGN_OR_RETURN(auto all, of.gpu.allocate(kRanks * kPiece, "all"));
    std::iota(host.as<int>().begin(), host.as<int>().end(), own * 1'000'000);
    RECMILL_RETURN_IF_ERROR(of.stream.to_device(from, host, kRanks * kPiece));
    std::vector<DeviceBytes> outgoing, incoming, gathered;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      outgoing.push_back({from.address<std::byte>() + rank * kPiece, kPiece});
      incoming.push_back({to.address<std::byte>() + rank * kPiece, kPiece});
      gathered.push_back({all.address<std::byte>() + rank * kPiece, kPiece});
    }
    RECMILL_RETURN_IF_ERROR(of.communicator.all_to_all(outgoing, incoming, of.stream));
    // The rank before has sent its piece of this rank; it goes on to all.
    const int before = (own + kRanks - 1) % kRanks;
    RECMILL_RETURN_IF_ERROR(of.communicator.all_gather(incoming[before], gathered, of.stream));
    RECMILL_RETURN_IF_ERROR(of.stream.to_host(host, all, kRanks * kPiece));
    EXPECT_EQ(host.as<int>()[0], own * 1'000'000);  // nothing happens before it is waited for
    RECMILL_RETURN_IF_ERROR(of.communicator.wait(of.stream));
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == own) continue;
      const int sender = (rank + kRanks - 1) % kRanks;
      for (int i = 0; i < kCount; ++i)
        EXPECT_EQ(host.as<int>()[rank * kCount + i], sender * 1'000'000 + rank * kCount + i);
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(NcclCommunicator, sizes_that_differ_are_an_error) {
  const Status status = GpuRank::run(2, 60, [](GpuRank& of) -> Status {
    const size_t own = of.communicator.rank(), other = 1 - own;
    RECMILL_ASSIGN_OR_RETURN(auto memory, of.gpu.allocate(64, "memory"));
    std::vector<DeviceBytes> outgoing(2), incoming(2);
    outgoing[other] = {memory.address<void>(), 8};
    incoming[other] = {memory.address<std::byte>() + 32, own == 0 ? size_t{9} : size_t{8}};
    RECMILL_RETURN_IF_ERROR(of.communicator.all_to_all(outgoing, incoming, of.stream));
    return of.communicator.wait(of.stream);
  });
  // Rank 1 hears that another rank has failed, and may be the first to tell.
  EXPECT_THAT(
      status.message(),
      ::testing::AnyOf("rank 0: all-to-all: with rank 1: invalid usage (NCCL error 5)",
                       "rank 1: all-to-all: with rank 0: another rank has failed (NCCL error 6)"));
}

TEST(NcclCommunicator, names_who_does_not_come_within_the_limit) {
  std::atomic<bool> has_given_up{false};
  const Status status = GpuRank::run(3, 0.25, [&](GpuRank& of) -> Status {
    if (of.communicator.rank() == 1) {
      while (!has_given_up) std::this_thread::yield();
      return of.communicator.barrier();
    }
    RECMILL_ASSIGN_OR_RETURN(auto memory, of.gpu.allocate(64, "memory"));
    std::vector<DeviceBytes> outgoing(3), incoming(3);
    outgoing[1] = {memory.address<void>(), 8};
    RECMILL_RETURN_IF_ERROR(of.communicator.all_to_all(outgoing, incoming, of.stream));
    const Status waited = of.communicator.wait(of.stream);
    has_given_up = true;
    return waited;
  });
  EXPECT_THAT(status.message(), HasSubstr(": all-to-all: no answer in 0.25 s from rank 1"));
}

/// What a rank sends to the other one, of two, and waits for.
Status exchange_with_other(GpuRank& of, GpuExchange& exchange) {
  const size_t other = 1 - of.communicator.rank();
  RECMILL_ASSIGN_OR_RETURN(auto memory, of.gpu.allocate(64, "memory"));
  std::vector<DevicePieces> outgoing(2), incoming(2);
  outgoing[other] = {{memory.address<void>(), 8}};
  incoming[other] = {{memory.address<std::byte>() + 32, 8}};
  RECMILL_RETURN_IF_ERROR(exchange.all_to_all(outgoing, incoming, of.stream));
  return exchange.wait(of.stream);
}

constexpr GpuOptions kShortKernels{.kernel_seconds = 0.1};

TEST(NcclGpuExchange, does_not_wait_for_others_while_its_own_gpu_is_stuck) {
  for (const int before : {0, 2}) {  // messages
    const auto body = [&](GpuRank& of) -> Status {
      NcclGpuExchange exchange(of.gpu, of.communicator);
      for (int i = 0; i < before; ++i) RECMILL_RETURN_IF_ERROR(exchange_with_other(of, exchange));
      if (of.communicator.rank() == 0)
        RECMILL_RETURN_IF_ERROR(enqueue_on_emulated(of.stream.handle(), [] { return false; }));
      return exchange_with_other(of, exchange);
    };
    EXPECT_EQ(GpuRank::run(2, 60, body, kShortKernels).message(),
              "rank 0: a GPU's work between messages is not done after 0.1 s");
  }
}

TEST(NcclGpuExchange, waits_for_others_longer_than_for_its_own_gpu) {
  const auto body = [&](GpuRank& of) -> Status {
    NcclGpuExchange exchange(of.gpu, of.communicator);
    if (of.communicator.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return exchange_with_other(of, exchange);
  };
  const Status status = GpuRank::run(2, 60, body, kShortKernels);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(NcclGpuExchange, does_not_count_its_own_gpus_time_as_waiting_for_others) {
  const auto body = [&](GpuRank& of) -> Status {
    NcclGpuExchange exchange(of.gpu, of.communicator);
    const auto is_over = [watch = Stopwatch()] { return watch.seconds() > 0.4; };
    RECMILL_RETURN_IF_ERROR(enqueue_on_emulated(of.stream.handle(), is_over));
    return exchange_with_other(of, exchange);
  };
  const Status status = GpuRank::run(2, 0.2, body);
  EXPECT_TRUE(status.ok()) << status.message();
}

// ---- what NCCL and other ranks do wrong

TEST(NcclCommunicator, ranks_that_are_not_in_step_find_out) {
  const Status status = run_nccl(2, emulated_nccl(), {}, [](Communicator& communicator) -> Status {
    std::byte flag{1};
    if (communicator.rank() == 1) return communicator.broadcast(std::span(&flag, 1), 1);
    return communicator.barrier();
  });
  EXPECT_THAT(status.message(), HasSubstr("is in another call: "));
  EXPECT_THAT(status.message(), HasSubstr("broadcast 0 of 1 bytes from rank 1"));
}

TEST(NcclCommunicator, broadcasts_of_different_sizes_are_an_error) {
  const Status status = run_nccl(2, emulated_nccl(), {}, [](Communicator& communicator) -> Status {
    std::vector<std::byte> bytes(8 + communicator.rank());
    return communicator.broadcast(bytes, 0);
  });
  EXPECT_THAT(status.message(), HasSubstr("is in another call: broadcast 0 of "));
}

TEST(NcclCommunicator, says_what_nccl_refused_and_with_whom) {
  const auto gather = [](Communicator& communicator) {
    return communicator.all_gather(std::vector<std::byte>(10)).status();
  };
  const auto send_all = [](Communicator& communicator) {
    const std::vector<std::byte> bytes(10);
    return communicator.all_to_all(std::vector(2, std::span<const std::byte>(bytes))).status();
  };
  nccl::Api api = emulated_nccl();
  api.send = [](const void*, size_t, int, int, nccl::Comm, nccl::Stream) { return 2; };
  EXPECT_THAT(
      run_nccl(2, api, {}, send_all).message(),
      ::testing::AnyOf("rank 0: all-to-all: ncclSend to rank 1: unknown error (NCCL error 2)",
                       "rank 1: all-to-all: ncclSend to rank 0: unknown error (NCCL error 2)"));
  api = emulated_nccl();
  api.broadcast = [](const void*, void*, size_t, int, int, nccl::Comm, nccl::Stream) { return 3; };
  EXPECT_THAT(run_nccl(2, api, {}, gather).message(),
              HasSubstr(": all-gather: ncclBroadcast from rank 0: unknown error (NCCL error 3)"));
  api = emulated_nccl();
  api.unique_id = [](nccl::UniqueId*) { return 1; };
  EXPECT_EQ(run_nccl(2, api, {}, gather).message(),
            "rank 0: making an NCCL communicator: ncclGetUniqueId: unknown error (NCCL error 1)");
  api = emulated_nccl();
  api.init = [](nccl::Comm*, int, nccl::UniqueId, int, nccl::Config*) { return 5; };
  EXPECT_THAT(run_nccl(2, api, {}, gather).message(),
              HasSubstr(": making an NCCL communicator: ncclCommInitRankConfig: invalid usage "
                        "(NCCL error 5)"));
}

TEST(NcclCommunicator, does_not_wait_longer_than_the_limit_for_what_nccl_makes) {
  nccl::Api api = emulated_nccl();
  api.async_error = [](nccl::Comm, nccl::Result* state) {
    *state = nccl::kInProgress;
    return 0;
  };
  const Status status = run_nccl(2, api, {.limit_seconds = 0.1},
                                 [](Communicator&) { return Status::Failed("was made"); });
  EXPECT_THAT(status.message(),
              HasSubstr(": making an NCCL communicator: no answer in 0.1 s from rank "));
}

TEST(NcclCommunicator, names_a_gpu_that_cannot_be_had) {
  const auto open = [](int number) -> Result<std::unique_ptr<Gpu>> {
    if (number == 1) return Status::Failed("GPU 1: the machine has 1");
    return emulated_gpu(number);
  };
  NcclWorld world(std::make_unique<ThreadsWorld>(), {emulated_nccl(), open, {}});
  EXPECT_EQ(world.run(2, [](Communicator&) { return Status(); }).message(),
            "rank 1: GPU 1: the machine has 1");
}

}  // namespace
}  // namespace recmill
