// SPDX-License-Identifier: Apache-2.0
// Values that a configuration lists as text, as `missing` of a column does, in whatever form a cell
// of the data has them.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/row/number_text.h"

namespace recmill::reader {

/// A value is listed when one of the texts, written in its place, would be read as it: numbers and
/// times go by value ("7.0" is 7, and what float32 rounds to the same is the same float32), text by
/// its bytes.
class NamedValues {
 public:
  NamedValues() = default;
  explicit NamedValues(const std::vector<std::string>& texts);

  bool empty() const { return values_.empty(); }
  /// Of a cell that is text.
  bool has_text(std::string_view text) const;
  /// Of a number: an integer (a Boolean is 1 or 0), a float32 or a float64.
  template <typename Number>
  bool has_number(Number number) const {
    return has([number](const Value& value) {
      if constexpr (std::integral<Number>) {
        return value.whole.has_value() && *value.whole == whole_of(number);
      } else {
        return value.number.has_value() && static_cast<Number>(*value.number) == number;
      }
    });
  }
  /// Of a half float, whatever its type: `round` makes one of a float64.
  template <typename Half, typename Round>
  bool has_half(Half half, Round round) const {
    return has([&](const Value& v) { return v.number.has_value() && round(*v.number) == half; });
  }
  /// Of unix seconds.
  bool has_time(int64_t seconds) const;
  /// Of a cell of text that stands for a number, or for a whole number.
  bool has_number_in(std::string_view cell) const;
  bool has_whole_in(std::string_view cell) const;

 private:
  struct Value {
    std::string text;
    std::optional<double> number;
    std::optional<Whole> whole;
    std::optional<int64_t> time;
  };
  template <typename Is>
  bool has(Is is) const {
    for (const Value& value : values_) {
      if (is(value)) return true;
    }
    return false;
  }

  std::vector<Value> values_;
};

}  // namespace recmill::reader
