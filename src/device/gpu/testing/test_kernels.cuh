// SPDX-License-Identifier: Apache-2.0
// What gpu_test.cc launches.
#pragma once

#include "device/kernel.cuh"

namespace recmill::testing {

struct AddArguments {
  const float* from;
  float* to;
  i64 count;
  float value;
};
struct StopArguments {
  u32 thread;  // that traps
};
struct SpinArguments {
  i64 rounds;
};

}  // namespace recmill::testing

RECMILL_KERNEL(64, 1) test_add(const recmill::testing::AddArguments a) {
  const recmill::i64 i = static_cast<recmill::i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < a.count) a.to[i] = a.from[i] + a.value;
}
RECMILL_EMULATED_ENTRY(test_add, recmill::testing::AddArguments)

RECMILL_KERNEL(64, 1) test_stop(const recmill::testing::StopArguments a) {
  if (threadIdx.x == a.thread) __trap();
}
RECMILL_EMULATED_ENTRY(test_stop, recmill::testing::StopArguments)

RECMILL_KERNEL(64, 1) test_spin(const recmill::testing::SpinArguments a) {
  for (recmill::i64 i = 0; i < a.rounds; ++i) __syncthreads();
}
RECMILL_EMULATED_ENTRY(test_spin, recmill::testing::SpinArguments)
