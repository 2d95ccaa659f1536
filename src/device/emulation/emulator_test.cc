// SPDX-License-Identifier: Apache-2.0
#include "device/emulation/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "device/kernel.cuh"

namespace recmill::emulation {
namespace {

using testing::HasSubstr;

/// Runs `kernel` with `arguments` in every order, so that each gets the same memory to write.
template <class Arguments>
Result<Usage> run(const Grid& grid, void (*kernel)(Arguments), const Arguments& arguments,
                  const Turns& how = {}) {
  struct Call {
    void (*kernel)(Arguments);
    const Arguments* arguments;
  };
  const Call call{kernel, &arguments};
  return run_kernel(
      "tested", grid,
      [](const void* of) {
        const auto& call = *static_cast<const Call*>(of);
        call.kernel(*call.arguments);
      },
      &call, how);
}

std::vector<Turns> orders() {
  std::vector<Turns> all{{Order::forward}, {Order::reverse}};
  for (uint64_t seed = 1; seed <= 4; ++seed) all.push_back({Order::random, seed});
  return all;
}

struct Words {
  u32* out;
};

/// What a kernel writes into `words` words: the same in every order.
std::vector<u32> written(const Grid& grid, void (*kernel)(Words), size_t words) {
  std::vector<u32> first;
  for (const Turns& how : orders()) {
    std::vector<u32> out(words, 0);
    const auto usage = run(grid, kernel, Words{out.data()}, how);
    EXPECT_TRUE(usage.ok()) << usage.status().message();
    if (first.empty()) first = out;
    EXPECT_EQ(out, first) << "order " << static_cast<int>(how.order) << ", seed " << how.seed;
  }
  return first;
}

// ---- indices

void number_threads(Words to) {
  const u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  to.out[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread + 1;
}

TEST(Emulator, RunsEachThreadOfEachBlockOnce) {
  const auto out = written({{3, 2, 2}, {5, 4, 2}}, &number_threads, 12 * 40);
  for (u32 block = 0; block < 12; ++block)
    for (u32 thread = 0; thread < 40; ++thread)
      EXPECT_EQ(out[block * 40 + thread], block * 1000 + thread + 1);
}

TEST(Emulator, RunsBlocksOfEverySize) {
  for (const unsigned threads : {1u, 31u, 33u, 1024u}) {
    const auto out = written({{2}, {threads}}, &number_threads, 2 * threads);
    EXPECT_EQ(out[2 * threads - 1], 1000 + threads);
  }
}

// ---- barriers

void turn_around(Words to) {
  RECMILL_SHARED(values, u32[96]);
  for (int round = 0; round < 3; ++round) {
    values[threadIdx.x] = threadIdx.x * 10 + round;
    __syncthreads();
    to.out[round * 96 + threadIdx.x] = values[95 - threadIdx.x];
    __syncthreads();
  }
}

TEST(Emulator, BarriersOrderSharedMemory) {
  const auto out = written({{1}, {96}}, &turn_around, 3 * 96);
  for (u32 round = 0; round < 3; ++round)
    for (u32 i = 0; i < 96; ++i) EXPECT_EQ(out[round * 96 + i], (95 - i) * 10 + round);
}

void vote(Words to) {
  if (threadIdx.x >= 60) return;  // who has ended is not waited for
  const int own = static_cast<int>(threadIdx.x % 3 == 0);
  const int count = __syncthreads_count(own);
  const int any = __syncthreads_or(threadIdx.x == 59), none = __syncthreads_or(0);
  const int all = __syncthreads_and(1), not_all = __syncthreads_and(threadIdx.x != 7);
  to.out[threadIdx.x] =
      static_cast<u32>(count * 10000 + any * 1000 + none * 100 + all * 10 + not_all);
}

TEST(Emulator, BarriersCountVotes) {
  const auto out = written({{1}, {70}}, &vote, 70);
  for (u32 i = 0; i < 70; ++i) EXPECT_EQ(out[i], i < 60 ? 201010u : 0u);
}

// ---- warps

struct ShuffleCase {
  u32* out;  // [4][threads]
  int operand, width;
};

void shuffle_all(ShuffleCase of) {
  const u32 value = threadIdx.x + 100, n = blockDim.x;
  of.out[threadIdx.x] = __shfl_sync(0xffffffffu, value, of.operand, of.width);
  of.out[n + threadIdx.x] =
      __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(of.operand), of.width);
  of.out[2 * n + threadIdx.x] =
      __shfl_down_sync(0xffffffffu, value, static_cast<unsigned>(of.operand), of.width);
  of.out[3 * n + threadIdx.x] = __shfl_xor_sync(0xffffffffu, value, of.operand, of.width);
}

TEST(Emulator, ShufflesAsCudaDefinesThem) {
  constexpr int kThreads = 64;
  for (const int width : {1, 2, 4, 8, 16, 32}) {
    for (const int operand : {0, 1, 3, 5, 17, 31}) {
      std::vector<u32> out(4 * kThreads);
      const auto usage =
          run({{1}, {kThreads}}, &shuffle_all, ShuffleCase{out.data(), operand, width});
      ASSERT_TRUE(usage.ok()) << usage.status().message();
      for (int i = 0; i < kThreads; ++i) {
        const int lane = i % 32, warp = i - lane, in_group = lane % width, group = lane - in_group;
        const auto at = [&](int of) { return static_cast<u32>(warp + of + 100); };
        EXPECT_EQ(out[i], at(group + operand % width));
        EXPECT_EQ(out[kThreads + i], at(in_group >= operand ? lane - operand : lane));
        EXPECT_EQ(out[2 * kThreads + i], at(in_group + operand < width ? lane + operand : lane));
        EXPECT_EQ(out[3 * kThreads + i],
                  at((lane ^ operand) < group + width ? lane ^ operand : lane));
      }
    }
  }
}

void agree(Words to) {
  const u32 lane = threadIdx.x % 32;
  u32* out = to.out + threadIdx.x * 8;
  out[0] = __ballot_sync(0xffffffffu, lane % 5 == 0);
  out[1] = static_cast<u32>(__any_sync(0xffffffffu, lane == 31) * 2 + __any_sync(0xffffffffu, 0));
  out[2] = static_cast<u32>(__all_sync(0xffffffffu, 1) * 2 + __all_sync(0xffffffffu, lane != 4));
  out[3] = __match_any_sync(0xffffffffu, lane / 8);
  out[4] = __reduce_add_sync(0xffffffffu, lane + 1);
  out[5] = static_cast<u32>(__reduce_min_sync(0xffffffffu, static_cast<int>(lane) - 20));
  out[6] = static_cast<u32>(__reduce_max_sync(0xffffffffu, 3 - static_cast<int>(lane)));
  const u32 quarter = 0xffu << (lane / 8 * 8);  // groups of lanes by themselves
  float sum = static_cast<float>(lane);
  for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(quarter, sum, step, 8);
  __syncwarp(quarter);
  out[7] = static_cast<u32>(sum);
}

TEST(Emulator, WarpsAgree) {
  const auto out = written({{1}, {64}}, &agree, 64 * 8);
  for (u32 i = 0; i < 64; ++i) {
    const u32 quarter = i % 32 / 8;
    EXPECT_EQ(out[i * 8], 0x42108421u);
    EXPECT_EQ(out[i * 8 + 1], 2u);
    EXPECT_EQ(out[i * 8 + 2], 2u);
    EXPECT_EQ(out[i * 8 + 3], 0xffu << quarter * 8);
    EXPECT_EQ(out[i * 8 + 4], 528u);
    EXPECT_EQ(static_cast<int>(out[i * 8 + 5]), -20);
    EXPECT_EQ(static_cast<int>(out[i * 8 + 6]), 3);
    EXPECT_EQ(out[i * 8 + 7], quarter * 64 + 28);
  }
}

void branch_by_lane(Words to) {
  const u32 lane = threadIdx.x;
  u32 got = 0;
  if (lane < 8) got = __shfl_sync(0xffu, lane, 3);
  if (lane >= 8) got = __shfl_sync(0xffffff00u, lane, 20);
  to.out[lane] = got + __reduce_add_sync(0xffffffffu, 1u);
}

TEST(Emulator, LanesMayPartAndMeetAgain) {
  const auto out = written({{1}, {32}}, &branch_by_lane, 32);
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 8 ? 35u : 52u);
}

// ---- atomics

struct Counters {
  u32* sums;
  float* total;
  u64* large;
  i32* least;
};

void count(Counters to) {
  atomicAdd(&to.sums[threadIdx.x % 4], 1u);
  atomicAdd(to.total, 0.5f);
  atomicAdd(to.large, u64{1} << 33);
  atomicMin(to.least, -static_cast<i32>(threadIdx.x));
  atomicMax(&to.sums[4], threadIdx.x);
  atomicOr(&to.sums[5], 1u << threadIdx.x % 32);
  atomicInc(&to.sums[7], 6u);
  u32 seen = 0, found = 0;
  do {
    found = seen;
    seen = atomicCAS(&to.sums[6], found, found + 2);
  } while (seen != found);
}

TEST(Emulator, AtomicsLoseNothing) {
  for (const Turns& how : orders()) {
    u32 sums[8] = {};
    float total = 0;
    u64 large = 0;
    i32 least = 0;
    const auto usage = run({{3}, {100}}, &count, Counters{sums, &total, &large, &least}, how);
    ASSERT_TRUE(usage.ok()) << usage.status().message();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(sums[i], 75u);
    EXPECT_EQ(sums[4], 99u);
    EXPECT_EQ(sums[5], 0xffffffffu);
    EXPECT_EQ(sums[6], 600u);
    EXPECT_EQ(sums[7], 300u % 7);
    EXPECT_EQ(total, 150.0f);
    EXPECT_EQ(large, u64{300} << 33);
    EXPECT_EQ(least, -99);
  }
}

// ---- shared memory

void use_shared(Words to) {
  RECMILL_SHARED(one, float);
  RECMILL_SHARED(many, u32[10]);
  RECMILL_DYNAMIC_SHARED(u32, given);
  if (threadIdx.x < 10) to.out[threadIdx.x] = many[threadIdx.x] & given[threadIdx.x];
  if (threadIdx.x == 0) to.out[10] = one != one ? 1 : 0;
}

TEST(Emulator, SharedMemoryBeginsPoisonedAndIsCounted) {
  std::vector<u32> out(11, 0);
  const auto usage = run({{1}, {16}, 40}, &use_shared, Words{out.data()});
  ASSERT_TRUE(usage.ok()) << usage.status().message();
  EXPECT_EQ(usage->shared_bytes, 40u + 4 + 40);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(out[i], 0xffffffffu);
  EXPECT_EQ(out[10], 1u);
}

// ---- errors

std::string error_of(const Grid& grid, void (*kernel)(Words), const Turns& how = {}) {
  std::vector<u32> out(2048);
  const auto usage = run(grid, kernel, Words{out.data()}, how);
  EXPECT_FALSE(usage.ok());
  // What comes after an error runs as if there had been none.
  EXPECT_TRUE(run({{1}, {64}}, &turn_around, Words{out.data()}).ok());
  return usage.status().message();
}

void barrier_of_some(Words) {
  if (threadIdx.x < 16) __syncthreads();
  __syncwarp();
}

TEST(Emulator, NamesWhoWaitsForWhom) {
  const std::string said = error_of({{1}, {32}}, &barrier_of_some);
  EXPECT_THAT(said, HasSubstr("emulator_test.cc:"));
  EXPECT_THAT(
      said,
      HasSubstr("kernel tested, block (0, 0, 0), thread (0, 0, 0): waits here, and thread 16 at"));
}

void never_ends(Words to) {
  while (atomicAdd(to.out, 0u) == 0) __syncthreads();
}

TEST(Emulator, EndsWhatDoesNotEnd) {
  Turns how;
  how.most = 10000;
  EXPECT_THAT(error_of({{1}, {32}}, &never_ends, how),
              HasSubstr("more than 10000 turns: it does not come to an end"));
}

void traps(Words) {
  if (blockIdx.x == 1 && threadIdx.x == 5) __trap();
}

TEST(Emulator, ReportsTraps) {
  EXPECT_THAT(error_of({{3}, {32}}, &traps),
              HasSubstr("block (1, 0, 0), thread (5, 0, 0): trapped"));
}

TEST(Emulator, RefusesGridsThatNoGpuHas) {
  EXPECT_EQ(error_of({{1}, {1025}}, &traps),
            "kernel tested: a block of 1025 threads, not 1 to 1024");
  EXPECT_EQ(error_of({{1, 65536}, {1}}, &traps), "kernel tested: a grid of 1 x 65536 x 1 blocks");
}

}  // namespace
}  // namespace recmill::emulation
