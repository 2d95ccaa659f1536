// SPDX-License-Identifier: Apache-2.0
// All keys of a description, for tests that give them values.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/option_ranges.h"
#include "schema/options.h"

namespace recmill::config {

struct OptionKey {
  enum class Kind { boolean, integer, real, text, name };
  std::string section;  // "train.decay"; empty: none
  std::string key;
  /// Of lists of sections that it is in, the innermost one, "data.columns"; empty: none.
  std::string list;
  Kind kind = Kind::text;
  bool is_list = false;
  Range range;                     // of numbers
  std::vector<std::string> names;  // of names

  /// "data.columns[0].name": of the first item of a list.
  std::string path() const {
    const std::string within = list == section && !list.empty() ? section + "[0]" : section;
    return within.empty() ? key : within + "." + key;
  }
  /// The line that begins its section in a file; empty: none.
  std::string heading() const {
    if (section.empty()) return "";
    return list == section ? "[[" + section + "]]\n" : "[" + section + "]\n";
  }
};

/// Visits a description and those of all sections in it, none of which is a list in a list.
class OptionKeys {
 public:
  template <typename Options>
  static std::vector<OptionKey> of() {
    OptionKeys visitor;
    Options options;
    describe(visitor, options);
    return std::move(visitor.keys_);
  }

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& field, std::string_view, const Rest&... rest) {
    if constexpr (internal::OptionStruct<T>) {
      enter(key, field, list_);
    } else if constexpr (internal::is_vector<T>) {
      if constexpr (internal::OptionStruct<typename T::value_type>) {
        typename T::value_type item{};
        enter(key, item, within(key));
      } else {
        add<T>(key, rest...);
      }
    } else {
      add<T>(key, rest...);
    }
  }

 private:
  std::string within(std::string_view key) const {
    return section_.empty() ? std::string(key) : section_ + "." + std::string(key);
  }
  template <typename T>
  void enter(std::string_view key, T& section, std::string list) {
    const std::string outer_section = std::exchange(section_, within(key));
    const std::string outer_list = std::exchange(list_, std::move(list));
    describe(*this, section);
    section_ = outer_section;
    list_ = outer_list;
  }
  template <typename T, typename... Rest>
  void add(std::string_view name, const Rest&... rest) {
    using Value = typename internal::ValueOf<T>::type;
    OptionKey key;
    key.section = section_;
    key.key = name;
    key.list = list_;
    key.is_list = internal::is_vector<T>;
    if constexpr (internal::is_number<T>) {
      key.kind = std::same_as<Value, double> ? OptionKey::Kind::real : OptionKey::Kind::integer;
      key.range = internal::range_of<T>(rest...);
    } else if constexpr (std::same_as<Value, bool>) {
      key.kind = OptionKey::Kind::boolean;
    } else if constexpr (NamedEnum<Value>) {
      key.kind = OptionKey::Kind::name;
      for (const auto& [value, text] : EnumNames<Value>::names) key.names.emplace_back(text);
    }
    keys_.push_back(std::move(key));
  }

  std::string section_, list_;
  std::vector<OptionKey> keys_;
};

}  // namespace recmill::config
