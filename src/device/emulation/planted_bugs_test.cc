// SPDX-License-Identifier: Apache-2.0
// A test of the tests: kernels with a bug each, and who must catch it. Beside each is its twin
// without the bug, which nobody may complain of.
//
// What only a sanitizer sees is tested where the tests are built with it (presets asan and tsan).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/emulation/emulator.h"
#include "device/kernel.cuh"

#if defined(__SANITIZE_THREAD__)
// A race ends the process with this status.
extern "C" const char* __tsan_default_options() {  // NOLINT: the sanitizer's name
  return "halt_on_error=1:exitcode=66";
}
#endif

namespace recmill::emulation {
namespace {

constexpr unsigned kThreads = 64, kBlocks = 2;

struct Data {
  const float* in;  // [kBlocks * kThreads]
  float* out;       // the same, zeros
};

RECMILL_DEVICE unsigned place() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}

// ---- order in a block

template <bool kPlanted>
void read_before_barrier(Data of) {
  RECMILL_SHARED(values, float[kThreads]);
  values[threadIdx.x] = of.in[place()];
  if (!kPlanted) __syncthreads();
  of.out[place()] = values[(threadIdx.x + 40) % kThreads];
}

template <bool kPlanted>
void write_before_all_have_read(Data of) {
  RECMILL_SHARED(values, float[kThreads]);
  float sum = 0;
  for (int round = 0; round < 3; ++round) {
    values[threadIdx.x] = of.in[place()] + static_cast<float>(round);
    __syncthreads();
    sum += values[(threadIdx.x + 40) % kThreads];
    if (!kPlanted) __syncthreads();
  }
  of.out[place()] = sum;
}

template <bool kPlanted>
void missing_syncwarp(Data of) {
  RECMILL_SHARED(values, float[kThreads]);
  values[threadIdx.x] = of.in[place()];
  if (!kPlanted) __syncwarp();
  of.out[place()] = values[threadIdx.x ^ 17];
}

template <bool kPlanted>
void late_write(Data of) {
  RECMILL_SHARED(value, float);
  if (!kPlanted && threadIdx.x == 0) value = of.in[place()];
  __syncthreads();
  if (kPlanted && threadIdx.x == 0) value = of.in[place()];
  of.out[place()] = threadIdx.x == 0 ? 0 : value;
}

// ---- order between blocks, and atomics

template <bool kPlanted>
void plain_sum(Data of) {
  if (kPlanted) {
    of.out[0] += of.in[place()];
  } else {
    atomicAdd(&of.out[0], of.in[place()]);
  }
}

template <bool kPlanted>
void blocks_write_the_same(Data of) {
  if (threadIdx.x == 0) of.out[kPlanted ? 0 : blockIdx.x] = of.in[place()];
}

template <bool kPlanted>
void blocks_write_the_same_late(Data of) {
  const float value = of.in[place()];
  __syncthreads();
  of.out[kPlanted ? threadIdx.x : place()] = value > 0 ? 1 : 2;  // the same of all blocks
}

template <bool kPlanted>
void atomic_beside_plain_write(Data of) {
  if (kPlanted && threadIdx.x == 9) of.out[blockIdx.x] = 0;
  atomicAdd(&of.out[blockIdx.x], of.in[place()]);
}

// ---- beyond a variable

template <bool kPlanted>
void beyond_global(Data of) {
  of.out[place()] = of.in[place() + (kPlanted ? 1 : 0)];
}

template <bool kPlanted>
void beyond_shared(Data of) {
  RECMILL_SHARED(values, float[kThreads]);
  values[threadIdx.x + (kPlanted ? 1 : 0)] = of.in[place()];
  __syncthreads();
  of.out[place()] = values[threadIdx.x];
}

template <bool kPlanted>
void beyond_dynamic_shared(Data of) {
  RECMILL_DYNAMIC_SHARED(float, values);
  values[threadIdx.x + (kPlanted ? 1 : 0)] = of.in[place()];
  __syncthreads();
  of.out[place()] = values[threadIdx.x];
}

template <bool kPlanted>
void beyond_local(Data of) {
  volatile float values[4] = {};
  const unsigned last = threadIdx.x < 100 ? (kPlanted ? 4 : 3) : 0;
  for (unsigned i = 0; i <= last; ++i) values[i] = of.in[place()];
  of.out[place()] = values[threadIdx.x % 4];
}

template <bool kPlanted>
void misaligned(Data of) {
  if (threadIdx.x >= kThreads / 4) return;
  const unsigned group = blockIdx.x * (kThreads / 4) + threadIdx.x;
  const bool last = group == kBlocks * kThreads / 4 - 1;
  const float* from = of.in + group * 4 + (kPlanted && !last ? 1 : 0);
  const float4 four = *reinterpret_cast<const float4*>(from);
  of.out[group] = four.x + four.y + four.z + four.w;
}

// ---- what the emulator refuses

template <bool kPlanted>
void shuffle_in_branch(Data of) {
  float value = of.in[place()];
  if (!kPlanted || threadIdx.x % 32 < 20) value = __shfl_sync(0xffffffffu, value, 3);
  __syncthreads();
  of.out[place()] = value;
}

template <bool kPlanted>
void shuffle_after_exit(Data of) {
  const float value = of.in[place()];
  if (kPlanted && threadIdx.x % 32 == 30) return;
  of.out[place()] = __shfl_xor_sync(0xffffffffu, value, 1);
}

template <bool kPlanted>
void barriers_in_branches(Data of) {
  if (kPlanted && threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  of.out[place()] = of.in[place()];
}

template <bool kPlanted>
void read_outside_mask(Data of) {
  if (threadIdx.x % 32 >= 16) return;
  of.out[place()] = __shfl_down_sync(0xffffu, of.in[place()], kPlanted ? 8 : 0);
}

template <bool kPlanted>
void uninitialised_shared(Data of) {
  RECMILL_SHARED(sums, float[kThreads]);
  if (!kPlanted) sums[threadIdx.x] = 0;
  sums[threadIdx.x] += of.in[place()];
  of.out[place()] = sums[threadIdx.x];
}

// ---- who catches what

struct Planted {
  const char* name;
  void (*kernel)(Data);
  void (*twin)(Data);
  bool forward, reverse, random;  // whose values differ from the twin's
  const char* error;              // the emulator's, or null
  const char* address;  // what AddressSanitizer or UndefinedBehaviorSanitizer says, or null
  bool race;            // ThreadSanitizer does
};

#define PLANTED(kernel) #kernel, &kernel < true>, &kernel < false>

const Planted kAll[] = {
    {PLANTED(read_before_barrier), true, true, true, nullptr, nullptr, true},
    {PLANTED(write_before_all_have_read), true, true, true, nullptr, nullptr, true},
    {PLANTED(missing_syncwarp), true, true, true, nullptr, nullptr, true},
    {PLANTED(late_write), false, true, true, nullptr, nullptr, true},
    // No order shows it: threads take turns at barriers and atomics, of which it has none.
    {PLANTED(plain_sum), false, false, false, nullptr, nullptr, true},
    {PLANTED(blocks_write_the_same), true, true, true, nullptr, nullptr, true},
    {PLANTED(blocks_write_the_same_late), true, true, true, nullptr, nullptr, true},
    {PLANTED(atomic_beside_plain_write), true, true, true, nullptr, nullptr, true},
    {PLANTED(beyond_global), false, false, false, nullptr, "heap-buffer-overflow", false},
    {PLANTED(beyond_shared), false, false, false, nullptr,
     "heap-buffer-overflow|index 64 out of bounds", false},
    {PLANTED(beyond_dynamic_shared), false, false, false, nullptr, "heap-buffer-overflow", false},
    {PLANTED(beyond_local), false, false, false, nullptr,
     "stack-buffer-overflow|index 4 out of bounds", false},
    {PLANTED(misaligned), true, true, true, nullptr, "misaligned address", false},
    {PLANTED(shuffle_in_branch), false, false, false, "waits here, and thread", nullptr, false},
    {PLANTED(shuffle_after_exit), false, false, false, "has ended", nullptr, false},
    {PLANTED(barriers_in_branches), false, false, false, "is at this barrier while thread", nullptr,
     false},
    {PLANTED(read_outside_mask), false, false, false, "which its mask 0x0000ffff does not name",
     nullptr, false},
    {PLANTED(uninitialised_shared), true, true, true, nullptr, nullptr, false},
};

struct Ran {
  std::vector<float> out;
  std::string error;
};

Ran run(void (*kernel)(Data), const Turns& turns) {
  struct Call {
    void (*kernel)(Data);
    Data data;
  };
  std::vector<float> in(kBlocks * kThreads);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i % 101 + 1);
  Ran ran;
  ran.out.resize(in.size(), 0);
  const Call call{kernel, {in.data(), ran.out.data()}};
  const auto usage = run_kernel(
      "planted", {{kBlocks}, {kThreads}, kThreads * sizeof(float)},
      [](const void* of) {
        const auto& call = *static_cast<const Call*>(of);
        call.kernel(call.data);
      },
      &call, turns);
  if (!usage.ok()) ran.error = usage.status().message();
  return ran;
}

std::vector<Turns> random_orders() {
  std::vector<Turns> orders;
  for (uint64_t seed = 1; seed <= 10; ++seed) orders.push_back({Order::random, seed});
  return orders;
}

class PlantedBugs : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBugs, TwinIsFine) {
  const Ran first = run(GetParam().twin, {});
  EXPECT_EQ(first.error, "");
  auto orders = random_orders();
  orders.push_back({Order::reverse});
  for (const Turns& turns : orders) {
    const Ran ran = run(GetParam().twin, turns);
    EXPECT_EQ(ran.error, "");
    EXPECT_EQ(ran.out, first.out);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_P(PlantedBugs, OrdersShowIt) {
  const Planted& bug = GetParam();
  if (bug.address != nullptr && !bug.forward) return;  // it would write where others' memory is
  const std::vector<float> right = run(bug.twin, {}).out;
  const auto shows = [&](const Turns& turns) { return run(bug.kernel, turns).out != right; };
  if (bug.error == nullptr) {
    EXPECT_EQ(shows({Order::forward}), bug.forward);
    EXPECT_EQ(shows({Order::reverse}), bug.reverse);
    for (const Turns& turns : random_orders()) EXPECT_EQ(shows(turns), bug.random) << turns.seed;
  }
}
#endif

#if !defined(__SANITIZE_THREAD__)
TEST_P(PlantedBugs, EmulatorRefusesIt) {
  const Planted& bug = GetParam();
  if (bug.error == nullptr) return;
  auto orders = random_orders();
  orders.push_back({Order::forward});
  orders.push_back({Order::reverse});
  for (const Turns& turns : orders) {
    const std::string error = run(bug.kernel, turns).error;
    EXPECT_THAT(error, testing::HasSubstr(bug.error));
    EXPECT_THAT(error, testing::StartsWith("planted_bugs_test.cc:"));
  }
}
#endif

#if defined(__SANITIZE_ADDRESS__)
TEST_P(PlantedBugs, AddressSanitizerShowsIt) {
  const Planted& bug = GetParam();
  if (bug.address == nullptr) return;
  EXPECT_DEATH(run(bug.kernel, {}), bug.address);
}
#endif

#if defined(__SANITIZE_THREAD__)
TEST_P(PlantedBugs, ThreadSanitizerShowsIt) {
  const Planted& bug = GetParam();
  if (!bug.race) return;
  EXPECT_EXIT(run(bug.kernel, {}), testing::ExitedWithCode(66), "data race");
}
#endif

INSTANTIATE_TEST_SUITE_P(All, PlantedBugs, testing::ValuesIn(kAll),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace recmill::emulation
