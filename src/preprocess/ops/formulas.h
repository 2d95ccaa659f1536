// SPDX-License-Identifier: Apache-2.0
// What the ops compute of one value, one id or one length: one text for every device. Each is its
// op's parameters; the op's own header says what it means.
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"
#include "base/split_mix.h"

namespace recmill::preprocess {

/// What stands for an id that has no row: the lookup is left out.
inline constexpr uint64_t kNoRow = ~uint64_t{0};

/// What became of ids; sums of pieces are those of the whole.
struct IdCounts {
  int64_t clamped = 0;
  int64_t dropped = 0;
  int64_t unseen = 0;   // looked up in a dictionary in evaluation, and not in it
  int64_t refused = 0;  // ids that are errors
  RECMILL_HOST_DEVICE void add(const IdCounts& other) {
    clamped += other.clamped;
    dropped += other.dropped;
    unseen += other.unseen;
    refused += other.refused;
  }
  bool operator==(const IdCounts&) const = default;
};

/// What an op on dense values could not tell apart; sums of pieces are those of the whole.
struct FlattenedCounts {
  int64_t values = 0;  // that came to it, missing ones left out
  int64_t below = 0;   // of these, below its KeptRange, and above
  int64_t above = 0;
  RECMILL_HOST_DEVICE void add(const FlattenedCounts& other) {
    values += other.values;
    below += other.below;
    above += other.above;
  }
  bool operator==(const FlattenedCounts&) const = default;
};

/// The values that an op on dense values keeps apart: of all below it makes one, and of all above.
struct KeptRange {
  float low = -std::bit_cast<float>(0x7F800000);
  float high = std::bit_cast<float>(0x7F800000);
};

/// Constants of Log.
namespace log_plus_one {
inline constexpr int32_t kTwoThirds = 0x3F2AAAAB;  // bits of 2/3, rounded up
inline constexpr int32_t kInfinity = 0x7F800000;   // its bits
inline constexpr float kLarge = 16777216.0f;       // 2^24
inline constexpr float kHigh = 0x1.62e4p-1f;
inline constexpr float kLow = 0x1.7f7d1cp-20f;
inline constexpr float kQ[8] = {0x1.55550ap-2f, -0x1.fffef8p-3f, 0x1.99ce98p-3f, -0x1.559cb0p-3f,
                                0x1.1eed4ap-3f, -0x1.f32dfep-4f, 0x1.1e0512p-3f, -0x1.07ca1ep-3f};
}  // namespace log_plus_one

namespace formulas {

// ---- dense values

struct Clamp {
  float low, high;
  RECMILL_HOST_DEVICE float operator()(float x) const {
    return x < low ? low : x > high ? high : x;
  }
  RECMILL_HOST_DEVICE KeptRange kept() const { return {low, high}; }
};

struct FillNull {
  float value;
  RECMILL_HOST_DEVICE float operator()(float x) const { return x != x ? value : x; }
};

struct Log {
  RECMILL_HOST_DEVICE float operator()(float x) const {
    using namespace log_plus_one;
    const float z = x < 0 ? 0.0f : x;
    if (!(z < std::bit_cast<float>(kInfinity))) return z;
    const float u = z + 1.0f;
    const auto bits = std::bit_cast<int32_t>(u);
    const int32_t k = (bits - kTwoThirds) >> 23;
    float f;
    if (z < kLarge) {
      const float scale = std::bit_cast<float>((127 - k) << 23);
      f = z * scale + (scale - 1.0f);
    } else {
      f = std::bit_cast<float>(bits - (k << 23)) - 1.0f;
    }
    float q = kQ[7];
    for (int i = 6; i >= 0; --i) q = q * f + kQ[i];
    const auto kf = static_cast<float>(k);
    const float square = f * f;
    float y = square * f * q + kf * kLow;
    y = y - square * 0.5f;
    return kf * kHigh + (f + y);
  }
  RECMILL_HOST_DEVICE KeptRange kept() const { return {.low = 0.0f}; }
};

struct Standardize {
  double mean, scale;  // 1 / deviation: a division takes registers that kernels have not
  RECMILL_HOST_DEVICE float operator()(float x) const {
    return static_cast<float>((static_cast<double>(x) - mean) * scale);
  }
};

struct Bucketize {
  const float* borders;  // ascending
  int64_t count;
  /// Borders below x, by halves.
  RECMILL_HOST_DEVICE uint64_t operator()(float x) const {
    int64_t below = 0, end = count;
    while (below < end) {
      const int64_t middle = below + (end - below) / 2;
      if (borders[middle] < x) {
        below = middle + 1;
      } else {
        end = middle;
      }
    }
    return static_cast<uint64_t>(below);
  }
};

// ---- ids

struct Direct {
  enum class OutOfRange : int32_t { error, clamp, drop };
  uint64_t rows;
  OutOfRange out_of_range;
  RECMILL_HOST_DEVICE uint64_t operator()(uint64_t id, IdCounts& counts) const {
    if (id < rows) return id;
    if (out_of_range == OutOfRange::clamp) {
      ++counts.clamped;
      return static_cast<int64_t>(id) < 0 ? 0 : rows - 1;
    }
    ++(out_of_range == OutOfRange::drop ? counts.dropped : counts.refused);
    return kNoRow;
  }
};

struct Modulo {
  uint64_t rows;
  RECMILL_HOST_DEVICE uint64_t operator()(uint64_t id) const { return id % rows; }
};

/// The high word of the 128-bit product.
RECMILL_HOST_DEVICE constexpr uint64_t high_word(uint64_t a, uint64_t b) {
  const uint64_t a_low = static_cast<uint32_t>(a), a_high = a >> 32;
  const uint64_t b_low = static_cast<uint32_t>(b), b_high = b >> 32;
  const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const uint64_t rest = a_low * b_high + static_cast<uint32_t>(middle);
  return a_high * b_high + (middle >> 32) + (rest >> 32);
}

struct SigridHash {
  uint64_t rows, salt;
  RECMILL_HOST_DEVICE constexpr uint64_t operator()(uint64_t id) const {
    return high_word(split_mix(id ^ salt), rows);
  }
};

// ---- bags: how long they are

struct FillMissingId {
  uint64_t id;
  RECMILL_HOST_DEVICE int64_t length(int64_t before) const { return before < 1 ? 1 : before; }
};

struct FirstX {
  int64_t x;  // at least 1
  RECMILL_HOST_DEVICE int64_t length(int64_t before) const { return before < x ? before : x; }
};

}  // namespace formulas
}  // namespace recmill::preprocess
