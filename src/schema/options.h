// SPDX-License-Identifier: Apache-2.0
// Options are plain structs. Each has one function
//     template <typename Visitor> void describe(Visitor& v, XOptions& o) {
//       v("rows", o.rows, "rows of the table; 0: as many as the data has");
//     }
// next to it, the only list of its fields. The configuration reader, the resolved configuration,
// the reference pages and --set are all visitors of it, so that none can forget a field. Field
// types: bool, int64_t, double, std::string, an enum with an EnumNames<> specialisation, a nested
// options struct, std::vector of any of these, and std::optional of one value (an exception to a
// default given elsewhere; absent: the default holds).
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace recmill {

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
