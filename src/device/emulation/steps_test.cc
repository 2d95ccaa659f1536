// SPDX-License-Identifier: Apache-2.0
// What the emulator counts of kernels that tell of their basic blocks; this file is compiled so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/emulation/emulator.h"
#include "device/kernel.cuh"

namespace recmill::emulation {
namespace {

constexpr unsigned kThreads = 64, kBlocks = 3;

struct Words {
  u32* out;    // [kBlocks * kThreads]
  i64* clock;  // the same
};

RECMILL_DEVICE unsigned place() {
  return blockIdx.x * kThreads + threadIdx.x;
}

/// As often as `times` says of each lane.
template <int (*times)(int lane)>
void loop(const void* arguments) {
  const auto& of = *static_cast<const Words*>(arguments);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  volatile u32 sum = 0;  // so that the loop stays
  for (int i = 0; i < times(lane); ++i) sum = sum + 1;
  of.out[place()] = sum;
}

template <int kTimes>
int every(int) {
  return kTimes;
}
int half(int lane) {
  return lane < 16 ? 1000 : 0;
}
int its_number(int lane) {
  return 100 * (lane + 1);
}

Usage usage_of(KernelBody kernel, Turns turns = {}) {
  u32 out[kBlocks * kThreads] = {};
  i64 clock[kBlocks * kThreads] = {};
  const Words words{out, clock};
  turns.count_lanes = true;
  const auto usage = run_kernel("tested", {{kBlocks}, {kThreads}}, kernel, &words, turns);
  EXPECT_TRUE(usage.ok()) << usage.status().message();
  return usage.ok() ? *usage : Usage{};
}

TEST(Steps, AWarpIsAsActiveAsItsLanes) {
  EXPECT_DOUBLE_EQ(usage_of(loop<every<1000>>).active_lanes(), 32.0);
  EXPECT_NEAR(usage_of(loop<half>).active_lanes(), 16.0, 0.5);
  EXPECT_NEAR(usage_of(loop<its_number>).active_lanes(), 16.5, 0.2);  // the mean of 1 ... 32
  EXPECT_NEAR(static_cast<double>(usage_of(loop<every<1000>>).warp_steps) /
                  static_cast<double>(usage_of(loop<every<100>>).warp_steps),
              10.0, 1.0);
}

TEST(Steps, AreTheSameInEveryOrder) {
  const Usage forward = usage_of(loop<its_number>);
  for (const Turns& turns : {Turns{Order::reverse}, Turns{Order::random, 7}}) {
    const Usage other = usage_of(loop<its_number>, turns);
    EXPECT_EQ(other.steps, forward.steps);
    EXPECT_EQ(other.warp_steps, forward.warp_steps);
  }
}

/// Lanes take the loop in turn, with a meeting in between or without.
template <bool kMeet>
void take_turns(const void* arguments) {
  const auto& of = *static_cast<const Words*>(arguments);
  for (u32 turn = 0; turn < 32; ++turn) {
    volatile u32 sum = 0;
    if (threadIdx.x % 32 == turn) {
      for (int i = 0; i < 1000; ++i) sum = sum + 1;
    }
    of.out[place()] = sum;
    if (kMeet) __syncwarp();
  }
}

TEST(Steps, LanesThatMeetBetweenDoNotGoTogether) {
  EXPECT_NEAR(usage_of(take_turns<true>).active_lanes(), 1.0, 0.2);
  EXPECT_GT(usage_of(take_turns<false>).active_lanes(), 30.0);
}

void read_clock(const void* arguments) {
  const auto& of = *static_cast<const Words*>(arguments);
  const i64 begin = recmill::block_clock();
  volatile u32 sum = 0;
  for (int i = 0; i < 1000; ++i) sum = sum + 1;
  __syncthreads();
  of.clock[place()] = recmill::block_clock() - begin;
}

TEST(Steps, AreTheClockOfABlock) {
  u32 out[kBlocks * kThreads] = {};
  i64 clock[kBlocks * kThreads] = {};
  const Words words{out, clock};
  Turns turns;
  turns.count_lanes = true;
  ASSERT_TRUE(run_kernel("tested", {{kBlocks}, {kThreads}}, read_clock, &words, turns).ok());
  EXPECT_GT(clock[0], 2 * 1000);  // of two warps
  EXPECT_LT(clock[0], 2 * 5000);
  for (const i64 each : clock) EXPECT_EQ(each, clock[0]);
}

void spin(const void*) {
  volatile u32 stop = 0;
  while (stop == 0) {
  }
}

TEST(Steps, AKernelThatSpinsIsEnded) {
  const auto ended = run_kernel("spinner", {{1}, {32}}, spin, nullptr, {.most_steps = 1000 * 1000});
  ASSERT_FALSE(ended.ok());
  EXPECT_THAT(ended.status().message(), testing::HasSubstr("spinner"));
  EXPECT_THAT(ended.status().message(), testing::HasSubstr("more than 1000000 steps"));
}

}  // namespace
}  // namespace recmill::emulation
