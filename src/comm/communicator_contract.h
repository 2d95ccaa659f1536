// SPDX-License-Identifier: Apache-2.0
// What every transport must do. A transport is a fixture: a type with
//     static Status run(int ranks, const std::function<Status(Communicator&)>& body);
//     static std::string name(int rank);
// `run` calls body once for each rank, all at the same time, in this process or in others that run
// the same test, and returns the first error, the same in all of them; `name` is what failures call
// a rank. Then
//     INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CommunicatorContract, ThreadsTransport);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "comm/batched_fetch.h"
#include "comm/communicator.h"

namespace recmill {

/// The bytes that `from` sends to `to` in one round: contents and size are a function of these.
inline std::vector<std::byte> message(int from, int to, int round, size_t size) {
  const Random random(17, Purpose::test, round);
  std::vector<std::byte> bytes(size);
  constexpr size_t kBlock = 16;
  for (size_t at = 0; at < size; at += kBlock) {
    const auto words = random.block(from * 100 + to, at / kBlock);
    std::memcpy(bytes.data() + at, words.data(), std::min(kBlock, size - at));
  }
  return bytes;
}

inline bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

template <typename Transport>
class CommunicatorContract : public ::testing::Test {};
TYPED_TEST_SUITE_P(CommunicatorContract);

constexpr int kRankCounts[] = {1, 2, 3, 4, 8};

TYPED_TEST_P(CommunicatorContract, all_to_all_delivers_every_size_to_every_rank) {
  for (int ranks : kRankCounts) {
    const auto size_of = [](int from, int to, int round) -> size_t {
      constexpr size_t kSizes[] = {0, 1, 3, 63, 64, 65, 4097, 100'003};
      return kSizes[(from * 3 + to * 5 + round) % 8];
    };
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      const int rank = communicator.rank();
      EXPECT_EQ(communicator.ranks(), ranks);
      for (int round = 0; round < 8; ++round) {
        std::vector<std::vector<std::byte>> messages;
        messages.reserve(ranks);
        for (int to = 0; to < ranks; ++to) {
          messages.push_back(message(rank, to, round, size_of(rank, to, round)));
        }
        const std::vector<std::span<const std::byte>> views(messages.begin(), messages.end());
        RECMILL_ASSIGN_OR_RETURN(const Received received, communicator.all_to_all(views));
        for (auto& sent : messages) sent.assign(sent.size(), std::byte{0xFF});
        for (int from = 0; from < ranks; ++from) {
          EXPECT_TRUE(
              equal(received.from(from), message(from, rank, round, size_of(from, rank, round))))
              << "round " << round << ", from " << from << " to " << rank << " of " << ranks;
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, all_gather_gives_every_rank_all_pieces) {
  for (int ranks : kRankCounts) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      for (size_t size : {0, 1, 65, 70'001}) {
        // Rank r brings r * size bytes: rank 0 always brings none.
        const auto mine = message(communicator.rank(), 0, 0, communicator.rank() * size);
        RECMILL_ASSIGN_OR_RETURN(const Received received, communicator.all_gather(mine));
        for (int from = 0; from < ranks; ++from) {
          EXPECT_TRUE(equal(received.from(from), message(from, 0, 0, from * size)));
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, broadcast_gives_every_rank_the_bytes_of_any_root) {
  for (int ranks : kRankCounts) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      for (int root = 0; root < ranks; ++root) {
        for (size_t size : {0, 1, 33, 50'000}) {
          auto bytes = message(communicator.rank(), 0, root, size);
          RECMILL_RETURN_IF_ERROR(communicator.broadcast(bytes, root));
          EXPECT_TRUE(equal(bytes, message(root, 0, root, size)));
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, counts_the_bytes_to_and_from_other_ranks) {
  for (int ranks : {1, 3}) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      const int rank = communicator.rank();
      RECMILL_RETURN_IF_ERROR(communicator.barrier());
      EXPECT_EQ(communicator.traffic().sent, 0u);
      RECMILL_RETURN_IF_ERROR(communicator.all_gather(message(rank, 0, 0, 100)).status());
      EXPECT_EQ(communicator.traffic().sent, 100u * (ranks - 1));
      EXPECT_EQ(communicator.traffic().received, 100u * (ranks - 1));
      auto bytes = message(0, 0, 0, 7);
      RECMILL_RETURN_IF_ERROR(communicator.broadcast(bytes, 0));
      EXPECT_EQ(communicator.traffic().received, 100u * (ranks - 1) + (rank == 0 ? 0 : 7));
      EXPECT_GE(communicator.traffic().seconds, 0.0);
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, many_rounds_of_mixed_calls_stay_in_step) {
  for (int ranks : kRankCounts) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      const Random random(3, Purpose::test);
      for (int round = 0; round < 200; ++round) {
        const uint64_t call = random.below(3, round);
        if (call == 0) RECMILL_RETURN_IF_ERROR(communicator.barrier());
        if (call == 1) {
          int value = communicator.rank() == round % ranks ? round : -1;
          RECMILL_RETURN_IF_ERROR(
              communicator.broadcast(std::as_writable_bytes(std::span(&value, 1)), round % ranks));
          EXPECT_EQ(value, round);
        }
        if (call == 2) {
          const auto mine = message(communicator.rank(), 0, round, round % 7);
          RECMILL_ASSIGN_OR_RETURN(const Received received, communicator.all_gather(mine));
          for (int from = 0; from < ranks; ++from) {
            EXPECT_TRUE(equal(received.from(from), message(from, 0, round, round % 7)));
          }
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, abort_wakes_everybody_and_names_the_rank_that_failed) {
  for (int ranks : {2, 3, 8}) {
    for (int failing = 0; failing < ranks; ++failing) {
      const std::string expected = TypeParam::name(failing) + ": table 'C3' is on fire";
      const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
        RECMILL_RETURN_IF_ERROR(communicator.barrier());
        if (communicator.rank() == failing) return Status::BadRequest("table 'C3' is on fire");
        const Status seen = communicator.barrier();  // `failing` never comes
        EXPECT_EQ(seen.message(), expected);
        EXPECT_EQ(communicator.all_gather({}).status().message(), expected);
        return seen;
      });
      EXPECT_EQ(status.code(), Status::Code::bad_request);
      EXPECT_EQ(status.message(), expected);
    }
  }
}

TYPED_TEST_P(CommunicatorContract, exchange_moves_messages_in_order_between_callers_memory) {
  constexpr int kMessages = 6;
  const auto size_of = [](int index) -> size_t { return index * index * 24'001; };  // 0 too
  for (int ranks : kRankCounts) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      const int rank = communicator.rank();
      for (int round = 0; round < 3; ++round) {
        RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator.exchange(1000 + round));
        std::map<std::pair<int, int>, std::vector<std::byte>> sent, received;
        for (int index = 0; index < kMessages; ++index) {
          for (int other = 0; other < ranks; ++other) {
            if (other == rank) continue;
            auto& out = sent[{other, index}] = message(rank, other, index, size_of(index));
            auto& in = received[{other, index}];
            in.resize(size_of(index));
            RECMILL_RETURN_IF_ERROR(exchange->receive(in, other, index % 2));
            RECMILL_RETURN_IF_ERROR(exchange->send(out, other, 2));
          }
        }
        for (int group : {1, 0, 2}) {
          RECMILL_RETURN_IF_ERROR(exchange->wait(group));
          for (const auto& [key, in] : received) {
            if (key.second % 2 != group) continue;
            EXPECT_TRUE(equal(in, message(key.first, rank, key.second, size_of(key.second))));
          }
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, exchanges_of_different_sizes_are_an_error) {
  const Status status = TypeParam::run(2, [&](Communicator& communicator) -> Status {
    std::byte byte{};
    RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator.exchange(8 + communicator.rank()));
    RECMILL_RETURN_IF_ERROR(exchange->receive(std::span(&byte, 1), 1 - communicator.rank(), 0));
    return exchange->wait(0);
  });
  EXPECT_NE(status.message().find("is in another call: "), std::string::npos) << status.message();
}

TYPED_TEST_P(CommunicatorContract, stores_before_a_fence_are_loaded_after_it) {
  for (int ranks : kRankCounts) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      if (!communicator.shares_memory()) return {};
      const int rank = communicator.rank();
      RECMILL_ASSIGN_OR_RETURN(const auto window, communicator.window(5001));
      for (int round = 0; round < 20; ++round) {
        const auto mine = message(rank, 0, round, 5001);
        std::ranges::copy(mine, window->of(rank).begin());
        RECMILL_RETURN_IF_ERROR(window->fence(round));
        for (int from = 0; from < ranks; ++from) {
          EXPECT_TRUE(equal(window->of(from), message(from, 0, round, 5001)));
        }
        RECMILL_RETURN_IF_ERROR(window->fence(round));
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract,
             a_window_larger_than_the_host_fails_on_all_ranks_with_its_reason) {
  constexpr size_t kTooMuch = size_t{1} << 50;
  for (int ranks : {1, 2, 3}) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      if (!communicator.shares_memory()) return Status::Failed("cannot share memory");
      const auto window = communicator.window(kTooMuch);
      EXPECT_NE(window.status().message().find("cannot "), std::string::npos)
          << communicator.rank() << " of " << ranks << ": " << window.status().message();
      return window.status();
    });
    EXPECT_FALSE(status.ok());
  }
}

TYPED_TEST_P(CommunicatorContract, abort_ends_waits_of_an_exchange_and_fences) {
  for (bool in_window : {false, true}) {
    const std::string expected = TypeParam::name(1) + ": the disk is full";
    const Status status = TypeParam::run(3, [&](Communicator& communicator) -> Status {
      std::byte byte{};
      if (in_window && communicator.shares_memory()) {
        RECMILL_ASSIGN_OR_RETURN(const auto window, communicator.window(1));
        if (communicator.rank() == 1) return Status::Failed("the disk is full");
        const Status seen = window->fence(0);
        EXPECT_EQ(seen.message(), expected);
        return seen;
      }
      RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator.exchange(1));
      if (communicator.rank() == 1) return Status::Failed("the disk is full");
      Status seen = exchange->receive(std::span(&byte, 1), 1, 0);
      if (seen.ok()) seen = exchange->wait(0);
      EXPECT_EQ(seen.message(), expected);
      return seen;
    });
    EXPECT_EQ(status.message(), expected);
  }
}

TYPED_TEST_P(CommunicatorContract, fences_of_different_things_are_an_error) {
  const Status status = TypeParam::run(2, [&](Communicator& communicator) -> Status {
    if (!communicator.shares_memory()) return Status::Failed("is in another call: none to be had");
    RECMILL_ASSIGN_OR_RETURN(const auto window, communicator.window(8));
    RECMILL_RETURN_IF_ERROR(window->fence(3));
    return window->fence(4 + communicator.rank());
  });
  EXPECT_NE(status.message().find("is in another call: "), std::string::npos) << status.message();
}

TYPED_TEST_P(CommunicatorContract, a_duplicate_serves_another_thread_at_the_same_time) {
  for (int ranks : {1, 2, 4}) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      RECMILL_ASSIGN_OR_RETURN(const auto duplicate, communicator.duplicate());
      EXPECT_EQ(duplicate->name(ranks - 1), communicator.name(ranks - 1));
      const auto gather = [&](Communicator& of, int which) -> Status {
        for (int round = 0; round < 30; ++round) {
          const auto mine = message(of.rank(), which, round, 1000 + round);
          RECMILL_ASSIGN_OR_RETURN(const Received received, of.all_gather(mine));
          for (int from = 0; from < ranks; ++from) {
            EXPECT_TRUE(equal(received.from(from), message(from, which, round, 1000 + round)));
          }
        }
        return {};
      };
      Status beside;
      std::thread other([&] { beside = gather(*duplicate, 1); });
      const Status own = gather(communicator, 0);
      other.join();
      RECMILL_RETURN_IF_ERROR(beside);
      return own;
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, a_failure_ends_the_calls_of_a_duplicate) {
  const std::string expected = TypeParam::name(2) + ": no more data";
  const Status status = TypeParam::run(3, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const auto duplicate, communicator.duplicate());
    if (communicator.rank() == 2) {
      communicator.abort(Status::Failed("no more data"));
      EXPECT_EQ(duplicate->barrier().message(), expected);
      return Status::Failed("no more data");
    }
    const Status seen = duplicate->barrier();
    EXPECT_EQ(seen.message(), expected);
    return seen;
  });
  EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
}

TYPED_TEST_P(CommunicatorContract, batched_fetch_brings_what_each_rank_keeps_under_the_ids) {
  constexpr size_t kGroups = 3;
  // As many ids as this, of which the first group of rank 0 and all of some ranks have none.
  const auto count_of = [](int asker, int owner, size_t group, int round) {
    return (asker + owner + round) % 4 * static_cast<int>(group) * 5;
  };
  const auto id_of = [](int asker, size_t group, int at) {
    return int64_t{asker} * 1000 + static_cast<int64_t>(group) * 100 + at;
  };
  const auto kept_under = [](int owner, size_t group, int64_t id) {
    return id * 100 + owner * 10 + static_cast<int64_t>(group);
  };
  for (int ranks : kRankCounts) {
    const Status status = TypeParam::run(ranks, [&](Communicator& communicator) -> Status {
      const int rank = communicator.rank();
      BatchedFetch fetch(communicator, kGroups);
      for (int round = 0; round < 4; ++round) {
        std::vector<GroupedIds> wanted(ranks);
        std::vector<std::vector<int64_t>> expected(ranks), answers(ranks);
        for (int owner = 0; owner < ranks; ++owner) {
          for (size_t group = 0; group < kGroups; ++group) {
            for (int at = 0; at < count_of(rank, owner, group, round); ++at) {
              wanted[owner].ids.push_back(id_of(rank, group, at));
              expected[owner].push_back(kept_under(owner, group, id_of(rank, group, at)));
            }
            wanted[owner].ends.push_back(static_cast<int64_t>(wanted[owner].ids.size()));
          }
        }
        const auto answer = [&](std::span<const GroupedIds> asked)
            -> Result<std::vector<std::span<const std::byte>>> {
          std::vector<std::span<const std::byte>> bytes;
          for (int asker = 0; asker < ranks; ++asker) {
            for (size_t group = 0; group < kGroups; ++group) {
              for (const int64_t id : asked[asker].of(group))
                answers[asker].push_back(kept_under(rank, group, id));
            }
            bytes.push_back(std::as_bytes(std::span(answers[asker])));
          }
          return bytes;
        };
        RECMILL_ASSIGN_OR_RETURN(const Received received, fetch.fetch(wanted, answer));
        for (int owner = 0; owner < ranks; ++owner) {
          EXPECT_TRUE(equal(received.from(owner), std::as_bytes(std::span(expected[owner]))))
              << "round " << round << ", from " << owner << " to " << rank << " of " << ranks;
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TYPED_TEST_P(CommunicatorContract, batched_fetch_refuses_a_request_of_other_groups) {
  const Status status = TypeParam::run(2, [&](Communicator& communicator) -> Status {
    const size_t groups = communicator.rank() == 0 ? 1 : 5;
    BatchedFetch fetch(communicator, groups);
    const std::vector<GroupedIds> wanted(2, {std::vector<int64_t>(groups, 2), {7, 8}});
    const auto answer =
        [](std::span<const GroupedIds> asked) -> Result<std::vector<std::span<const std::byte>>> {
      return std::vector<std::span<const std::byte>>(asked.size());
    };
    return fetch.fetch(wanted, answer).status();
  });
  EXPECT_NE(status.message().find("a request for ids is something else: "), std::string::npos)
      << status.message();
}

REGISTER_TYPED_TEST_SUITE_P(
    CommunicatorContract, all_to_all_delivers_every_size_to_every_rank,
    all_gather_gives_every_rank_all_pieces, broadcast_gives_every_rank_the_bytes_of_any_root,
    counts_the_bytes_to_and_from_other_ranks, many_rounds_of_mixed_calls_stay_in_step,
    abort_wakes_everybody_and_names_the_rank_that_failed,
    exchange_moves_messages_in_order_between_callers_memory,
    exchanges_of_different_sizes_are_an_error, stores_before_a_fence_are_loaded_after_it,
    a_window_larger_than_the_host_fails_on_all_ranks_with_its_reason,
    abort_ends_waits_of_an_exchange_and_fences, fences_of_different_things_are_an_error,
    a_duplicate_serves_another_thread_at_the_same_time, a_failure_ends_the_calls_of_a_duplicate,
    batched_fetch_brings_what_each_rank_keeps_under_the_ids,
    batched_fetch_refuses_a_request_of_other_groups);

}  // namespace recmill
