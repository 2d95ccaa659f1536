// SPDX-License-Identifier: Apache-2.0
// Option structs (schema/options.h) held to the ranges of their descriptions.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "schema/options.h"

namespace recmill {

/// "at least 0 and below 1": what a number of that range must be. Any number: empty.
std::string range_text(const Range& range);

namespace internal {

struct AnyVisitor {
  template <typename T, typename... Rest>
  void operator()(std::string_view, T&, std::string_view, Rest...) {}
};

template <typename T>
concept OptionStruct = std::is_class_v<T> && requires(AnyVisitor& v, T& o) {
  describe(v, o);
};

template <typename T>
constexpr bool is_vector = false;
template <typename T>
constexpr bool is_vector<std::vector<T>> = true;

template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;

/// The type of one value of a field: a list's items', an optional's value's.
template <typename T>
struct ValueOf {
  using type = T;
};
template <typename T>
struct ValueOf<std::vector<T>> : ValueOf<T> {};
template <typename T>
struct ValueOf<std::optional<T>> : ValueOf<T> {};

template <typename T>
constexpr bool is_number = std::same_as<typename ValueOf<T>::type, double> ||
                           std::same_as<typename ValueOf<T>::type, int64_t>;

/// The range that a key's description gives, or what holds without one.
template <typename T>
constexpr Range range_of() {
  static_assert(!std::same_as<typename ValueOf<T>::type, double>, "a real key says its range");
  return at_least(0);  // options count things
}
template <typename T>
constexpr Range range_of(const Range& range) {
  static_assert(is_number<T>, "what is no number has no range");
  return range;
}

Status outside(const std::string& path, int64_t value, const Range& range);
Status outside(const std::string& path, double value, const Range& range);

}  // namespace internal

/// Visits an option struct and all in it; keeps the first number outside its range.
class RangeCheck {
 public:
  explicit RangeCheck(std::string path) : path_(std::move(path)) {}
  const Status& status() const { return status_; }

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& field, std::string_view, const Rest&... rest) {
    if (!status_.ok()) return;
    const std::string path = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
    if constexpr (internal::OptionStruct<T>) {
      enter(path, field);
    } else if constexpr (internal::is_vector<T>) {
      for (size_t i = 0; i < field.size() && status_.ok(); ++i) {
        const std::string item = path + "[" + std::to_string(i) + "]";
        if constexpr (internal::OptionStruct<typename T::value_type>) {
          enter(item, field[i]);
        } else if constexpr (internal::is_number<T>) {
          check(field.size() == 1 ? path : item, field[i], internal::range_of<T>(rest...));
        }
      }
    } else if constexpr (internal::is_optional<T>) {
      if constexpr (internal::is_number<T>) {
        if (field.has_value()) check(path, *field, internal::range_of<T>(rest...));
      }
    } else if constexpr (internal::is_number<T>) {
      check(path, field, internal::range_of<T>(rest...));
    }
  }

 private:
  template <typename T>
  void enter(const std::string& path, T& section) {
    RangeCheck inner(path);
    describe(inner, section);
    status_ = inner.status();
  }
  template <typename T>
  void check(const std::string& path, T value, const Range& range) {
    if (!range.contains(static_cast<double>(value)))
      status_ = internal::outside(path, value, range);
  }

  const std::string path_;
  Status status_;
};

/// The first number of `options` that its range leaves out, by its key behind `path`:
/// "train.queue: must be at least 1 and at most 4096, is 0".
template <typename Options>
Status check_ranges(const Options& options, const std::string& path = "") {
  RangeCheck check(path);
  describe(check, const_cast<Options&>(options));  // visitors take fields by reference
  return check.status();
}

}  // namespace recmill
