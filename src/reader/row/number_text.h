// SPDX-License-Identifier: Apache-2.0
// Numbers and times as cells of text write them. Spaces may be around each, and a '+' before it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace recmill::reader {

/// True where there is no number: nothing but spaces, or `nan` in any case.
bool is_no_number(std::string_view cell);

/// A decimal number, rounded to float32 once (one that is too small is 0, with its sign), or True
/// or False, which are 1 and 0. An error where it is none or not finite as a float32.
Result<float> parse_number(std::string_view cell);

/// The same as a float64, which may be infinite or NaN.
std::optional<double> parse_double(std::string_view cell);

/// A whole number of up to 64 bits.
struct Whole {
  bool negative = false;  // not for 0
  uint64_t magnitude = 0;
  bool operator==(const Whole&) const = default;
};
template <std::integral Integer>
constexpr Whole whole_of(Integer value) {
  const auto bits = static_cast<uint64_t>(value);  // the sign is extended
  if constexpr (std::signed_integral<Integer>) {
    if (value < 0) return {true, 0 - bits};
  }
  return {false, bits};
}

/// A whole number however it is written: 7, +7, 7.0 or 70e-1; True or False.
std::optional<Whole> parse_whole(std::string_view cell);

/// Unix seconds: a decimal number; or an ISO 8601 date, 2014-10-21, with or without a time of day,
/// T09:30 or 09:30:15.5 behind a space, and that with or without an offset, Z, +02:00, +0200 or
/// +02. Without one it is UTC. Rounded down to a second.
Result<int64_t> parse_time(std::string_view cell);

/// The error for a cell that is not `what`.
Status not_a(std::string_view cell, const char* what);

}  // namespace recmill::reader
