// SPDX-License-Identifier: Apache-2.0
// Options are plain structs. Each has one function
//     template <typename Visitor> void describe(Visitor& v, XOptions& o) {
//       v("rows", o.rows, "rows of the table; 0: as many as the data has");
//     }
// next to it, the only list of its fields. The configuration reader, the resolved configuration,
// the reference pages and --set are all visitors of it, so that none can forget a field. Field
// types: bool, int64_t, double, std::string, an enum with an EnumNames<> specialisation, a nested
// options struct, std::vector of any of these, and std::optional of one value (an exception to a
// default given elsewhere; absent: the default holds). A number has a Range behind its
// documentation,
//     v("rate", o.rate, "share of ...", between(0, 1));
// which each real one must have; an integer without one is any from 0 on.
#pragma once

#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace recmill {

/// The values that a number may have: all finite ones of float32, in which they are computed with,
/// from `least` to `most`, and of these two ends each that is not `open`. NaN and the infinities
/// are in none.
struct Range {
  double least = std::numeric_limits<float>::lowest();
  double most = std::numeric_limits<float>::max();
  bool open_least = false, open_most = false;

  constexpr bool has_least() const { return least != std::numeric_limits<float>::lowest(); }
  constexpr bool has_most() const { return most != std::numeric_limits<float>::max(); }
  constexpr bool contains(double value) const {
    return (open_least ? value > least : value >= least) &&
           (open_most ? value < most : value <= most);
  }
};
constexpr Range any_number() {
  return {};
}
constexpr Range at_least(double least) {
  return {.least = least};
}
constexpr Range above(double least) {
  return {.least = least, .open_least = true};
}
constexpr Range between(double least, double most) {
  return {.least = least, .most = most};
}
constexpr Range from_to_below(double least, double most) {
  return {.least = least, .most = most, .open_most = true};
}
constexpr Range above_up_to(double least, double most) {
  return {.least = least, .most = most, .open_least = true};
}

/// Specialise with `static constexpr std::array names{std::pair{E::a, std::string_view{"a"}},
/// ...}`.
template <typename Enum>
struct EnumNames;

template <typename Enum>
concept NamedEnum = requires {
  EnumNames<Enum>::names;
};

template <NamedEnum Enum>
constexpr std::string_view name_of(Enum value) {
  for (const auto& [candidate, name] : EnumNames<Enum>::names) {
    if (candidate == value) return name;
  }
  return "?";
}

}  // namespace recmill
