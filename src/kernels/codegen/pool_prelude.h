// SPDX-License-Identifier: Apache-2.0
// Stands at the top of generated source, which includes nothing of Recmill: what it and the program
// that loads it agree on, then rows of every precision as vectors of floats.
#ifndef RECMILL_KERNELS_CODEGEN_POOL_PRELUDE_H_
#define RECMILL_KERNELS_CODEGEN_POOL_PRELUDE_H_

#include <stdint.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace recmill_generated {

constexpr int64_t kPreludeVersion = 4;

// One feature of a batch. What is not here is a constant of its schedule's function.
struct Feature {
  const int64_t* offsets;  // bag i is lookups [offsets[i], offsets[i + 1])
  const int64_t* lookups;  // numbers of rows
  const float* weights;    // beside lookups, or null: all 1
  const char* rows;        // on a cache line
  int64_t row_count;
  int64_t covering_lookups;  // which ask for as many cache lines as the rows have
  float* out;                // sample i at out + i * out_stride
  int64_t out_stride;        // floats
  int64_t schedule;          // of this source; -1: what is called by pointer
  // Pools samples [first, last) by a body that was compiled before.
  void (*by_pointer)(const Feature* feature, int64_t first, int64_t last, int64_t staging,
                     void* scratch);
};

// Samples [first, last) of a feature.
struct Piece {
  int64_t feature, first, last;
};

// The kernel's entry: pieces one after the other.
using Run = void (*)(const Feature* const* features, const Piece* pieces, int64_t count,
                     void* scratch);

typedef float f16 __attribute__((vector_size(64)));
typedef float f8 __attribute__((vector_size(32)));
typedef float f4 __attribute__((vector_size(16)));
typedef float f1;

template <class V>
struct Integers;  // a vector of uint16_t and one of uint32_t beside V
template <>
struct Integers<f16> {
  typedef uint16_t Half __attribute__((vector_size(32)));
  typedef uint32_t Word __attribute__((vector_size(64)));
};
template <>
struct Integers<f8> {
  typedef uint16_t Half __attribute__((vector_size(16)));
  typedef uint32_t Word __attribute__((vector_size(32)));
};
template <>
struct Integers<f4> {
  typedef uint16_t Half __attribute__((vector_size(8)));
  typedef uint32_t Word __attribute__((vector_size(16)));
};

template <class To, class From>
static inline __attribute__((always_inline)) To as(const From& from) {
  static_assert(sizeof(To) <= sizeof(From), "");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <class V>
static inline __attribute__((always_inline)) V float32(const char* at) {
  V value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

template <class V>
static inline __attribute__((always_inline)) V bfloat16(const char* at) {
  typename Integers<V>::Half half;
  __builtin_memcpy(&half, at, sizeof half);
  return as<V>(__builtin_convertvector(half, typename Integers<V>::Word) << 16);
}
template <>
inline __attribute__((always_inline)) f1 bfloat16<f1>(const char* at) {
  uint16_t half;
  __builtin_memcpy(&half, at, sizeof half);
  return as<f1>(uint32_t(half) << 16);
}

static inline float float16_bits(uint32_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u;
  const uint32_t fraction = half & 0x3FFu;
  if (exponent == 0) return as<float>(as<uint32_t>(static_cast<float>(fraction) * 0x1p-24f) | sign);
  return as<float>(sign | ((exponent == 31 ? 255u : exponent + 112u) << 23) | (fraction << 13));
}
template <class V>
static inline __attribute__((always_inline)) V float16(const char* at) {
  typename Integers<V>::Half half;
  __builtin_memcpy(&half, at, sizeof half);
  V value;
  for (unsigned l = 0; l < sizeof(V) / sizeof(float); ++l) value[l] = float16_bits(half[l]);
  return value;
}
template <>
inline __attribute__((always_inline)) f1 float16<f1>(const char* at) {
  uint16_t half;
  __builtin_memcpy(&half, at, sizeof half);
  return float16_bits(half);
}
#if defined(__F16C__)
template <>
inline __attribute__((always_inline)) f4 float16<f4>(const char* at) {
  return (f4)_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
}
template <>
inline __attribute__((always_inline)) f8 float16<f8>(const char* at) {
  return (f8)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
#if defined(__AVX512F__)
template <>
inline __attribute__((always_inline)) f16 float16<f16>(const char* at) {
  return (f16)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}
#endif
#endif

template <class V>
static inline __attribute__((always_inline)) void store(float* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

// store() past the caches of whole cache lines.
static inline __attribute__((always_inline)) void stream(float* to, f16 value) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, (__m512)value);
#elif defined(__SSE2__)
  for (int i = 0; i < 4; ++i)
    _mm_stream_ps(to + 4 * i, _mm_loadu_ps(reinterpret_cast<const float*>(&value) + 4 * i));
#else
  store(to, value);
#endif
}
static inline void finish_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

static inline int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Asks for the ids of lookups [next, until), not beyond `end`; returns the first that it did not
// ask for.
static inline int64_t fetch_ids(const int64_t* lookups, int64_t next, int64_t until, int64_t end) {
  for (until = least(until, end); next < until; next += 8) __builtin_prefetch(lookups + next);
  return next;
}

// Whether a schedule that stages the table does so before pieces[p]: the first of its feature's
// pieces, whose lookups together cover the table.
static inline int64_t covers_table(const Feature& feature, const Piece* pieces, int64_t p,
                                   int64_t count) {
  const int64_t of = pieces[p].feature;
  if (p > 0 && pieces[p - 1].feature == of) return 0;
  int64_t last = p;
  while (last + 1 < count && pieces[last + 1].feature == of) ++last;
  const int64_t lookups = feature.offsets[pieces[last].last] - feature.offsets[pieces[p].first];
  return lookups >= feature.covering_lookups;
}

// Reads all bytes in order, so that lookups find them in the core's cache.
static inline void read_all(const char* at, int64_t bytes) {
  typedef uint64_t Words __attribute__((vector_size(64)));
  Words all = {};
  for (const char* const end = at + bytes - 63; at < end; at += 64) {
    Words next;
    __builtin_memcpy(&next, at, sizeof next);
    all |= next;
  }
  // A use that the compiler cannot leave out.
  asm volatile("" ::"r"(all[0] | all[1] | all[2] | all[3] | all[4] | all[5] | all[6] | all[7]));
}

}  // namespace recmill_generated

#endif  // RECMILL_KERNELS_CODEGEN_POOL_PRELUDE_H_
