// SPDX-License-Identifier: Apache-2.0
// What every kernel includes, and nothing else of C++ or CUDA: so the same text is compiled by
// nvcc, by NVRTC at run time, which has no standard headers, and for the CPU's emulator of blocks
// and threads.
//
//   struct AddArguments { const float* from; float* to; i64 count; };
//   RECMILL_KERNEL(256, 1) add_kernel(const AddArguments a) {
//     RECMILL_SHARED(sums, float[256]);
//     ...
//   }
//
// The two numbers: threads of a block at most, and blocks that fit an SM at least. A
// kernel takes one struct, trivially copyable. Threads agree through __syncthreads(), the *_sync
// operations with masks that name exactly who takes part, and atomics: what happens without, such
// as a warp that goes in step, does not happen on the emulator, nor on every GPU. Blocks do not
// wait for each other. Device functions are RECMILL_DEVICE.
#pragma once

#include "device/kernel_types.h"

#if defined(__CUDACC__)

namespace recmill {
template <class T>
struct Same {
  using Type = T;
};
}  // namespace recmill

/// CUDA's names of atomics on 64 bits are of long long.
__device__ __forceinline__ recmill::u64 atomicAdd(recmill::u64* at, recmill::u64 value) {
  return ::atomicAdd(reinterpret_cast<unsigned long long*>(at), value);
}
__device__ __forceinline__ recmill::u64 atomicCAS(recmill::u64* at, recmill::u64 expected,
                                                  recmill::u64 value) {
  return ::atomicCAS(reinterpret_cast<unsigned long long*>(at), expected, value);
}

namespace recmill {
/// Counts one more arrival at `at`: who finds all others there sees what they wrote before.
__device__ __forceinline__ u32 arrive(u32* at) {
  __threadfence();
  const u32 before = ::atomicAdd(at, 1u);
  __threadfence();
  return before;
}
/// Has what is at `at` come nearer, before it is read.
__device__ __forceinline__ void prefetch(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}
/// The same, of which the compiler knows nothing. What follows from it is computed behind it: a
/// kernel's loop over work of many kinds would have it computed before, of all kinds, and kept in
/// registers that each kind needs.
__device__ __forceinline__ int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class T>
__device__ __forceinline__ T& opaque_reference(T& of) {
  T* at = &of;
  asm volatile("" : "+l"(at));
  return *at;
}
/// Time that the block's SM spent so far, in its own unit; right after a barrier.
__device__ __forceinline__ i64 block_clock() {
  return clock64();
}
/// The value of a float16 given by its bits.
__device__ __forceinline__ float float16_value(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
}  // namespace recmill

#define RECMILL_UNROLL _Pragma("unroll")
#define RECMILL_DEVICE __device__ __forceinline__
/// One that is called, and a table of pointers to such.
#define RECMILL_DEVICE_FUNCTION static __device__ __noinline__
#define RECMILL_DEVICE_TABLE static __device__
// Without the number of blocks ptxas takes 32 registers and spills what does not fit.
#define RECMILL_KERNEL(threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks)
/// Stands behind a kernel that the emulator may run: its name and that of its struct.
#define RECMILL_EMULATED_ENTRY(name, Arguments)
/// A variable of the block, such as RECMILL_SHARED(sums, float[256]), declared where all of its
/// threads come by. It begins with any bits at all.
#define RECMILL_SHARED(name, ...) __shared__ typename ::recmill::Same<__VA_ARGS__>::Type name
/// A pointer to as many T as the launch asked bytes for.
#define RECMILL_DYNAMIC_SHARED(T, name)                             \
  extern __shared__ __align__(128) unsigned char recmill_dynamic[]; \
  T* const name = reinterpret_cast<T*>(recmill_dynamic)

#else
#include "device/emulation/kernel_language.h"
#endif
