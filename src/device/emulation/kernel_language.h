// SPDX-License-Identifier: Apache-2.0
// CUDA's names for kernels that run on the emulator: the part of the language that
// device/kernel.cuh allows. Names and meanings are CUDA's. Each operation knows the place it is
// called at: that is what the last argument is for.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/emulation/thread_state.h"
#include "device/kernel_types.h"

#define RECMILL_UNROLL
#define RECMILL_DEVICE inline __attribute__((always_inline))
#define RECMILL_DEVICE_FUNCTION static __attribute__((noinline))
#define RECMILL_DEVICE_TABLE static
#define RECMILL_KERNEL(threads, blocks) extern "C" inline __attribute__((used)) void
#define RECMILL_EMULATED_ENTRY(name, Arguments)                                         \
  extern "C" inline __attribute__((used)) void name##_emulated(const void* arguments) { \
    name(*static_cast<const Arguments*>(arguments));                                    \
  }
#define RECMILL_SHARED(name, ...)                                                      \
  static const char recmill_key_of_##name = 0;                                         \
  auto& name = *static_cast<std::add_pointer_t<std::type_identity_t<__VA_ARGS__>>>(    \
      ::recmill::emulation::shared_variable(&recmill_key_of_##name,                    \
                                            sizeof(std::type_identity_t<__VA_ARGS__>), \
                                            alignof(std::type_identity_t<__VA_ARGS__>)))
#define RECMILL_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(      \
      ::recmill::emulation::dynamic_shared(alignof(T), ::std::source_location::current()))

#define threadIdx (::recmill::emulation::running->thread)
#define blockIdx (::recmill::emulation::running->block)
#define blockDim (::recmill::emulation::running->threads)
#define gridDim (::recmill::emulation::running->blocks)

struct alignas(16) float4 {
  float x, y, z, w;
};

namespace recmill::emulation {

using Here = std::source_location;

template <class T>
uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T value_of(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T shuffle(WarpOp op, unsigned mask, T value, int operand, int width, const Here& at) {
  return value_of<T>(call_warp({op, mask, bits_of(value), operand, width, at}));
}

// A shuffle whose lane is below or above by more than there are is its own.
constexpr int bounded(unsigned lanes) {
  return static_cast<int>(lanes > kWarp ? kWarp : lanes);
}

// Signed and unsigned whole numbers in the order of 64 unsigned bits.
constexpr uint64_t kSign = uint64_t{1} << 63;
inline uint64_t ordered(int64_t value) {
  return static_cast<uint64_t>(value) ^ kSign;
}

// An atomic on whole numbers: the builtin, and whoever may take turns there.
template <class T, class Change>
T change(T* at, const Change& changed) {
  at_atomic();
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  auto* bits = reinterpret_cast<Bits*>(at);
  Bits seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(bits, &seen,
                                      std::bit_cast<Bits>(changed(std::bit_cast<T>(seen))),
                                      /*weak=*/false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return std::bit_cast<T>(seen);
}

}  // namespace recmill::emulation

// ---- of a block

inline void __syncthreads(recmill::emulation::Here at = recmill::emulation::Here::current()) {
  recmill::emulation::call_barrier(false, at);
}
inline int __syncthreads_count(int predicate,
                               recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return recmill::emulation::call_barrier(predicate != 0, at).count;
}
inline int __syncthreads_or(int predicate,
                            recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return recmill::emulation::call_barrier(predicate != 0, at).count > 0 ? 1 : 0;
}
inline int __syncthreads_and(int predicate,
                             recmill::emulation::Here at = recmill::emulation::Here::current()) {
  const auto votes = recmill::emulation::call_barrier(predicate != 0, at);
  return votes.count == votes.threads ? 1 : 0;
}

// ---- of a warp

inline void __syncwarp(unsigned mask = 0xffffffffu,
                       recmill::emulation::Here at = recmill::emulation::Here::current()) {
  recmill::emulation::call_warp({recmill::emulation::WarpOp::sync, mask, 0, 0, 32, at});
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return recmill::emulation::shuffle(recmill::emulation::WarpOp::shuffle, mask, value, lane, width,
                                     at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return recmill::emulation::shuffle(recmill::emulation::WarpOp::shuffle_up, mask, value,
                                     recmill::emulation::bounded(lanes), width, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return recmill::emulation::shuffle(recmill::emulation::WarpOp::shuffle_down, mask, value,
                                     recmill::emulation::bounded(lanes), width, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return recmill::emulation::shuffle(recmill::emulation::WarpOp::shuffle_xor, mask, value, lanes,
                                     width, at);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return static_cast<unsigned>(recmill::emulation::call_warp(
      {recmill::emulation::WarpOp::ballot, mask, predicate != 0 ? 1u : 0u, 0, 32, at}));
}
inline int __any_sync(unsigned mask, int predicate,
                      recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return __ballot_sync(mask, predicate, at) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return __ballot_sync(mask, predicate, at) == mask ? 1 : 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value,
                          recmill::emulation::Here at = recmill::emulation::Here::current()) {
  return static_cast<unsigned>(
      recmill::emulation::call_warp({recmill::emulation::WarpOp::match_any, mask,
                                     recmill::emulation::bits_of(value), 0, 32, at}));
}
template <class T>
T __reduce_add_sync(unsigned mask, T value,
                    recmill::emulation::Here at = recmill::emulation::Here::current()) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4);
  return static_cast<T>(recmill::emulation::call_warp(
      {recmill::emulation::WarpOp::add, mask, static_cast<uint32_t>(value), 0, 32, at}));
}
template <class T>
T __reduce_min_sync(unsigned mask, T value,
                    recmill::emulation::Here at = recmill::emulation::Here::current()) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4);
  return static_cast<T>(
      recmill::emulation::call_warp({recmill::emulation::WarpOp::least, mask,
                                     recmill::emulation::ordered(value), 0, 32, at}) ^
      recmill::emulation::kSign);
}
template <class T>
T __reduce_max_sync(unsigned mask, T value,
                    recmill::emulation::Here at = recmill::emulation::Here::current()) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4);
  return static_cast<T>(
      recmill::emulation::call_warp({recmill::emulation::WarpOp::largest, mask,
                                     recmill::emulation::ordered(value), 0, 32, at}) ^
      recmill::emulation::kSign);
}

// ---- atomics: of the address, and nothing is ordered by them

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return recmill::emulation::change(at, [&](T seen) { return static_cast<T>(seen + value); });
}
/// Up to `last`, then from 0.
inline unsigned atomicInc(unsigned* at, unsigned last) {
  return recmill::emulation::change(at, [&](unsigned seen) { return seen < last ? seen + 1 : 0; });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return recmill::emulation::change(at, [&](T seen) { return seen < value ? value : seen; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return recmill::emulation::change(at, [&](T seen) { return value < seen ? value : seen; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return recmill::emulation::change(at, [&](T seen) { return seen | value; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return recmill::emulation::change(
      at, [&](T seen) { return std::memcmp(&seen, &expected, sizeof seen) == 0 ? value : seen; });
}

namespace recmill {
inline u32 arrive(u32* at) {
  emulation::at_atomic();
  return __atomic_fetch_add(at, 1u, __ATOMIC_ACQ_REL);
}
inline void prefetch(const void*) {}
inline int opaque(int value) {
  return value;
}
template <class T>
T& opaque_reference(T& of) {
  return of;
}
inline i64 block_clock() {
  return emulation::warp_steps_of_block();
}
inline float float16_value(u16 bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
}  // namespace recmill

// ---- of a thread

template <class T>
T __ldcg(const T* at) {
  return *at;
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
constexpr int __popc(unsigned bits) {
  return std::popcount(bits);
}
constexpr int __ffs(int bits) {
  return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1;
}
constexpr int __clz(int bits) {
  return std::countl_zero(static_cast<unsigned>(bits));
}
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
/// Ends the kernel with an error.
inline void __trap(recmill::emulation::Here at = recmill::emulation::Here::current()) {
  recmill::emulation::fail_kernel("trapped", at);
}
