// SPDX-License-Identifier: Apache-2.0
// What every GpuExchange must do. A way is a fixture: a type with
//     static Status run(int ranks, const std::function<Status(GpuExchangeRank&)>& body);
// then
//     INSTANTIATE_TYPED_TEST_SUITE_P(Staged, GpuExchangeContract, StagedFixture);
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.h"
#include "comm/communicator.h"
#include "comm/gpu/gpu_exchange.h"

namespace recmill {

/// One rank of a test.
struct GpuExchangeRank {
  Communicator& hosts;
  Gpu& gpu;
  GpuExchange& exchange;
};

namespace testing {

/// Sizes of the pieces of one message: a function of its ends and the round alone. Some are none,
/// some messages have no piece, those of one round are large.
inline std::vector<size_t> sizes_of_pieces(int round, int from, int to) {
  std::vector<size_t> sizes;
  if (from == to) return sizes;
  const Random random(round, Purpose::test, from * 100 + to);
  const uint64_t scale = round == 4 ? 1000 : 1;
  for (uint64_t piece = 0; piece < random.below(4, 0); ++piece)
    sizes.push_back(random.below(3, 1, piece) == 0 ? 0 : scale * random.below(3000, 2, piece));
  return sizes;
}

inline std::byte byte_of(int round, int from, int to, size_t i) {
  return static_cast<std::byte>(i * 7 + round * 3 + from * 31 + to * 57);
}

/// A rank's messages in one buffer of its GPU, rank after rank and piece after piece.
struct PlacedPieces {
  PinnedBuffer host;
  GpuBuffer there;
  std::vector<DevicePieces> of_ranks;

  static Result<PlacedPieces> make(Gpu& gpu, const std::vector<std::vector<size_t>>& sizes) {
    PlacedPieces placed;
    size_t bytes = 0;
    for (const auto& of_rank : sizes)
      for (const size_t size : of_rank) bytes += size;
    RECMILL_ASSIGN_OR_RETURN(placed.host, gpu.allocate_pinned(bytes, "pieces"));
    RECMILL_ASSIGN_OR_RETURN(placed.there, gpu.allocate(bytes, "pieces"));
    size_t at = 0;
    for (const auto& of_rank : sizes) {
      DevicePieces& pieces = placed.of_ranks.emplace_back();
      for (const size_t size : of_rank) {
        pieces.push_back({placed.there.address<std::byte>() + at, size});
        at += size;
      }
    }
    return placed;
  }
};

/// Sends and receives the messages of one round, and looks at what came.
inline Status exchange_round(int round, GpuExchangeRank& of, GpuStream& stream) {
  const int own = of.hosts.rank(), ranks = of.hosts.ranks();
  std::vector<std::vector<size_t>> out, in;
  std::vector<std::byte> sent, expected;
  for (int other = 0; other < ranks; ++other) {
    out.push_back(sizes_of_pieces(round, own, other));
    in.push_back(sizes_of_pieces(round, other, own));
    size_t i = 0;
    for (const size_t size : out.back())
      for (size_t end = i + size; i < end; ++i) sent.push_back(byte_of(round, own, other, i));
    i = 0;
    for (const size_t size : in.back())
      for (size_t end = i + size; i < end; ++i) expected.push_back(byte_of(round, other, own, i));
  }
  RECMILL_ASSIGN_OR_RETURN(auto to, PlacedPieces::make(of.gpu, out));
  RECMILL_ASSIGN_OR_RETURN(auto from, PlacedPieces::make(of.gpu, in));
  std::ranges::copy(sent, to.host.as<std::byte>().begin());
  RECMILL_RETURN_IF_ERROR(stream.to_device(to.there, to.host, sent.size()));
  RECMILL_RETURN_IF_ERROR(of.exchange.all_to_all(to.of_ranks, from.of_ranks, stream));
  RECMILL_RETURN_IF_ERROR(stream.to_host(from.host, from.there, expected.size()));
  RECMILL_RETURN_IF_ERROR(of.exchange.wait(stream));
  const auto came = from.host.as<std::byte>().first(expected.size());
  EXPECT_TRUE(std::ranges::equal(came, expected)) << "round " << round << ", rank " << own;
  return {};
}

}  // namespace testing

template <typename Fixture>
class GpuExchangeContract : public ::testing::Test {};
TYPED_TEST_SUITE_P(GpuExchangeContract);

TYPED_TEST_P(GpuExchangeContract, brings_pieces_of_any_size_in_the_order_of_a_stream) {
  for (int ranks : {1, 2, 3, 4}) {
    const Status status = TypeParam::run(ranks, [](GpuExchangeRank& of) -> Status {
      RECMILL_ASSIGN_OR_RETURN(auto stream, of.gpu.open_stream());
      for (int round = 0; round < 12; ++round)
        RECMILL_RETURN_IF_ERROR(testing::exchange_round(round, of, stream));
      return {};
    });
    EXPECT_TRUE(status.ok()) << ranks << " ranks: " << status.message();
  }
}

TYPED_TEST_P(GpuExchangeContract, ends_where_a_rank_fails) {
  const Status status = TypeParam::run(3, [](GpuExchangeRank& of) -> Status {
    RECMILL_ASSIGN_OR_RETURN(auto stream, of.gpu.open_stream());
    RECMILL_RETURN_IF_ERROR(testing::exchange_round(0, of, stream));
    if (of.hosts.rank() == 1) return Status::Failed("gave up");
    RECMILL_ASSIGN_OR_RETURN(auto memory, of.gpu.allocate(8, "a piece"));
    const DevicePieces piece{{memory.template address<void>(), 8}}, none;
    std::vector<DevicePieces> to(3), from(3);
    from[1] = piece;
    RECMILL_RETURN_IF_ERROR(of.exchange.all_to_all(to, from, stream));
    const Status waited = of.exchange.wait(stream);
    EXPECT_FALSE(waited.ok());
    return waited;
  });
  EXPECT_EQ(status.message(), "rank 1: gave up");
}

REGISTER_TYPED_TEST_SUITE_P(GpuExchangeContract, brings_pieces_of_any_size_in_the_order_of_a_stream,
                            ends_where_a_rank_fails);

}  // namespace recmill
