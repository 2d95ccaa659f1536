// SPDX-License-Identifier: Apache-2.0
// Messages of more than 2 GiB, which MPI cannot count in int, between 2 processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/random.h"
#include "comm/communicator.h"
#include "comm/testing/mpi_tests.h"

namespace recmill {
namespace {

MpiWorld* world = nullptr;

constexpr size_t kGiB = size_t{1} << 30;
constexpr size_t kSize = 2 * kGiB + 12'345;
constexpr size_t kLooked = 4096;  // bytes at a place

/// Where a message is looked at: its ends, what lies between, and both sides of every whole GiB,
/// where pieces may meet.
constexpr std::array kPlaces{size_t{0},    kGiB / 2,           kGiB - kLooked, kGiB,
                             3 * kGiB / 2, 2 * kGiB - kLooked, 2 * kGiB,       kSize - kLooked};

/// Zeroed, and pages that nobody touches take no memory.
using Bytes = std::unique_ptr<std::byte, decltype(&std::free)>;
Bytes blank() {
  return {static_cast<std::byte*>(std::calloc(kSize, 1)), &std::free};
}
std::span<std::byte> span_of(const Bytes& bytes) {
  return {bytes.get(), kSize};
}

void fill(std::span<std::byte> bytes, int round) {
  const Random random(23, Purpose::test, round);
  for (const size_t place : kPlaces) {
    for (size_t i = place; i < place + kLooked; ++i)
      bytes[i] = static_cast<std::byte>(random.bits(i));
  }
}

/// Whether they are as fill() left them.
bool arrived(std::span<const std::byte> bytes, int round) {
  const Random random(23, Purpose::test, round);
  return std::ranges::all_of(kPlaces, [&](size_t place) {
    for (size_t i = place; i < place + kLooked; ++i) {
      if (bytes[i] != static_cast<std::byte>(random.bits(i))) return false;
    }
    return true;
  });
}

class LargeMessages : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = world->communicator(2);
    ASSERT_TRUE(made.ok()) << made.status().message();
    communicator_ = *std::move(made);
  }
  bool sends() const { return communicator_->rank() == 0; }

  std::unique_ptr<Communicator> communicator_;
};

TEST_F(LargeMessages, all_to_all_brings_them_whole) {
  const Bytes bytes = blank();
  if (sends()) fill(span_of(bytes), 1);
  std::array<std::span<const std::byte>, 2> to_rank;
  if (sends()) to_rank[1] = span_of(bytes);
  const auto received = communicator_->all_to_all(to_rank);
  ASSERT_TRUE(received.ok()) << received.status().message();
  EXPECT_TRUE(received->from(1).empty());
  if (sends()) return;
  ASSERT_EQ(received->from(0).size(), kSize);
  EXPECT_TRUE(arrived(received->from(0), 1));
}

TEST_F(LargeMessages, broadcast_and_exchange_bring_them_whole) {
  const Bytes bytes = blank();
  if (sends()) fill(span_of(bytes), 2);
  const Status status = communicator_->broadcast(span_of(bytes), 0);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(arrived(span_of(bytes), 2));

  fill(span_of(bytes), sends() ? 3 : 4);
  auto exchange = communicator_->exchange(kSize);
  ASSERT_TRUE(exchange.ok()) << exchange.status().message();
  const auto give = [&](const Status& given) { EXPECT_TRUE(given.ok()) << given.message(); };
  give(sends() ? (*exchange)->send(span_of(bytes), 1, 0)
               : (*exchange)->receive(span_of(bytes), 0, 0));
  give((*exchange)->wait(0));
  EXPECT_TRUE(arrived(span_of(bytes), 3));
}

}  // namespace
}  // namespace recmill

int main(int argc, char** argv) {
  return recmill::run_mpi_tests(argc, argv, 2, recmill::world);
}
