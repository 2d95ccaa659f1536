// SPDX-License-Identifier: Apache-2.0
// A sum of floats without rounding.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace recmill {

/// The exact sum of any number of finite float32 values: the same in every order, and however the
/// values are parted among sums that are added. An integer in units of 2^-149, the least float, in
/// digits of 32 bits.
class ExactSum {
 public:
  static constexpr int kDigits = 11;  // 277 bits of the largest float, and 64 of how many there are

  void add(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = (bits >> 23) & 0xff, fraction = bits & 0x7fffff;
    const uint32_t place = exponent == 0 ? 0 : exponent - 1;
    const uint64_t units = uint64_t{exponent == 0 ? fraction : fraction | 0x800000} << (place % 32);
    const auto low = static_cast<int64_t>(units & kMask), high = static_cast<int64_t>(units >> 32);
    const bool negative = bits >> 31 != 0;
    digits_[place / 32] += negative ? -low : low;
    digits_[place / 32 + 1] += negative ? -high : high;
    if (++added_ == kMostAdded) carry();
  }
  void add(const ExactSum& other) {
    carry();
    ExactSum carried = other;
    carried.carry();
    for (int i = 0; i < kDigits; ++i) digits_[i] += carried.digits_[i];
    carry();
  }

  /// The sum divided by `count`, within a few units in the last place of float64; the same bits for
  /// the same sum.
  double mean(int64_t count) const {
    ExactSum carried = *this;
    carried.carry();
    const bool negative = carried.digits_[kDigits - 1] < 0;
    if (negative) {  // else leading digits would cancel, and round
      for (int64_t& digit : carried.digits_) digit = -digit;
      carried.carry();
    }
    double units = 0.0;
    for (int i = kDigits - 1; i >= 0; --i)
      units = units * 0x1p32 + static_cast<double>(carried.digits_[i]);
    const double value = std::ldexp(units, -149) / static_cast<double>(count);
    return negative ? -value : value;
  }

 private:
  static constexpr uint64_t kMask = 0xffffffff;
  static constexpr int64_t kMostAdded = int64_t{1} << 30;  // below 2^63 / 2^32

  // All digits but the last become those of a number in [0, 2^32).
  void carry() {
    for (int i = 0; i + 1 < kDigits; ++i) {
      digits_[i + 1] += digits_[i] >> 32;  // rounds down, as two's complement has it
      digits_[i] &= static_cast<int64_t>(kMask);
    }
    added_ = 0;
  }

  std::array<int64_t, kDigits> digits_ = {};  // the least first
  int64_t added_ = 0;                         // since the last carry()
};

}  // namespace recmill
