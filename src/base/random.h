// SPDX-License-Identifier: Apache-2.0
// Random numbers are a function of what they are for, never of a rank, a thread or a count of
// calls: Philox 4x32-10 (Salmon et al., SC 2011) over a 128-bit counter, keyed by the seed. The
// same definition serves every device.
#pragma once

#include <array>
#include <cstdint>

#include "base/philox.h"
#include "base/split_mix.h"

namespace recmill {

/// What a random number is for; a part of the counter, so that two uses never share numbers.
/// Values are part of the checkpoint's identity: append, never renumber.
enum class Purpose : uint32_t {
  initial_row = 1,
  initial_layer = 2,
  shuffle = 3,
  dropout = 4,
  stochastic_rounding = 5,
  split = 6,
  down_sampling = 7,
  synthetic = 8,
  test = 9,
  negative_items = 10,
  tuning = 11,
  sampling = 12,
};

/// A source of random numbers for one (seed, purpose, stream): numbers are addressed by (item,
/// block). `stream` is the iteration, the table or the column; `item` the global sample or the row
/// key; element e of an item is word e % 4 of block e / 4.
class Random {
 public:
  constexpr Random(uint64_t seed, Purpose purpose, uint64_t stream = 0)
      : key_(mix(mix(seed ^ 0x5265636D696C6C21ull) ^ (static_cast<uint64_t>(purpose) << 32)) ^
             mix(stream + 0x632BE59BD9B4E019ull)) {}

  /// Four independent uniform words.
  constexpr std::array<uint32_t, 4> block(uint64_t item, uint64_t block = 0) const {
    return philox({{static_cast<uint32_t>(item), static_cast<uint32_t>(item >> 32),
                    static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32)}},
                  key_);
  }

  constexpr uint32_t bits(uint64_t item, uint64_t element = 0) const {
    return block(item, element / 4)[element % 4];
  }

  constexpr uint64_t bits64(uint64_t item, uint64_t block_index = 0) const {
    const auto words = block(item, block_index);
    return (uint64_t{words[1]} << 32) | words[0];
  }

  /// Uniform in [0, 1), a multiple of 2^-24: exact in float32 on every device.
  static constexpr float unit(uint32_t word) {
    return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
  }
  constexpr float uniform(uint64_t item, uint64_t element = 0) const {
    return unit(bits(item, element));
  }

  /// Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform64(uint64_t item, uint64_t block_index = 0) const {
    return static_cast<double>(bits64(item, block_index) >> 11) * (1.0 / 9007199254740992.0);
  }

  /// Uniform in [0, bound); bound > 0. Multiply and shift: the bias is below bound / 2^64.
  constexpr uint64_t below(uint64_t bound, uint64_t item, uint64_t block_index = 0) const {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(bits64(item, block_index)) * bound) >> 64);
  }

  /// Standard normal by Box-Muller in float64.
  double normal(uint64_t item, uint64_t block_index = 0) const;

  static constexpr uint64_t mix(uint64_t x) { return split_mix(x); }

  /// What philox() is keyed by, for kernels.
  constexpr uint64_t key() const { return key_; }

 private:
  uint64_t key_;
};

}  // namespace recmill
