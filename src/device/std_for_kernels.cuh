// SPDX-License-Identifier: Apache-2.0
// Of the standard library what headers need that the CPU and kernels share: NVRTC has none of it.
#pragma once

#if defined(__CUDACC_RTC__)

using size_t = unsigned long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long;
using int32_t = int;
using int64_t = long;

namespace std {

template <class T, size_t kCount>
struct array {
  T values[kCount == 0 ? 1 : kCount];
  constexpr T& operator[](size_t i) { return values[i]; }
  constexpr const T& operator[](size_t i) const { return values[i]; }
};

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

inline float sqrt(float x) {
  return ::sqrtf(x);
}
inline double sqrt(double x) {
  return ::sqrt(x);
}
inline double exp(double x) {
  return ::exp(x);
}
inline double log1p(double x) {
  return ::log1p(x);
}
inline double pow(double x, double y) {
  return ::pow(x, y);
}
inline float fabs(float x) {
  return ::fabsf(x);
}
inline float floor(float x) {
  return ::floorf(x);
}
inline float ldexp(float x, int exponent) {
  return ::ldexpf(x, exponent);
}
inline int ilogb(float x) {
  return ::ilogbf(x);
}
inline float copysign(float x, float sign) {
  return ::copysignf(x, sign);
}

}  // namespace std

#else
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#endif
