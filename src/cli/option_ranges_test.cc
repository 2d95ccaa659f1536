// SPDX-License-Identifier: Apache-2.0
// Every number of a configuration: what its range leaves out is refused by file, line and key.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "cli/option_binder.h"
#include "reader/generate.h"
#include "train/run_options.h"

namespace recmill::cli {
namespace {

struct RangedKey {
  std::string heading;  // of its section in a file, with the line's end; empty: of none
  std::string key, path;
  bool real = false;
  Range range;
};

/// Visits a description and those of all sections in it.
class RangedKeys {
 public:
  template <typename Options>
  static std::vector<RangedKey> of() {
    RangedKeys visitor;
    Options options;
    describe(visitor, options);
    return std::move(visitor.keys_);
  }

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& field, std::string_view, const Rest&... rest) {
    if constexpr (internal::OptionStruct<T>) {
      enter(key, field, false);
    } else if constexpr (internal::is_vector<T>) {
      typename T::value_type item{};
      if constexpr (internal::OptionStruct<typename T::value_type>) {
        enter(key, item, true);
      } else {
        add<T>(key, rest...);
      }
    } else {
      add<T>(key, rest...);
    }
  }

 private:
  template <typename T, typename... Rest>
  void add(std::string_view key, const Rest&... rest) {
    using Value = typename internal::ValueOf<T>::type;
    if constexpr (std::same_as<Value, double> || std::same_as<Value, int64_t>) {
      keys_.push_back({heading_, std::string(key), within_ + std::string(key),
                       std::same_as<Value, double>, internal::range_of<T>(rest...)});
    }
  }
  template <typename T>
  void enter(std::string_view key, T& section, bool listed) {
    const std::string name = name_.empty() ? std::string(key) : name_ + "." + std::string(key);
    const std::string outer[] = {
        std::exchange(name_, name),
        std::exchange(heading_, listed ? "[[" + name + "]]\n" : "[" + name + "]\n"), within_};
    within_ += std::string(key) + (listed ? "[0]." : ".");
    describe(*this, section);
    name_ = outer[0];
    heading_ = outer[1];
    within_ = outer[2];
  }

  std::string name_, heading_, within_;  // of the section: the latter two as RangedKey has them
  std::vector<RangedKey> keys_;
};

/// Values just beyond the ends of the key's range, and of reals those that are no numbers.
std::vector<std::string> values_outside(const RangedKey& key) {
  std::vector<std::string> values;
  const auto add = [&](double end, bool open, double step) {
    const double value = open ? end : end + step;
    values.push_back(key.real ? fmt::format("{:.17e}", value) : fmt::format("{:.0f}", value));
  };
  // Of whole numbers above 2^53 the next one that is a double is farther away.
  const auto step = [&](double end) {
    return std::max(key.real ? 1e-9 : 1.0, std::abs(end) / 1e9);
  };
  if (key.range.has_least()) add(key.range.least, key.range.open_least, -step(key.range.least));
  if (key.range.has_most()) add(key.range.most, key.range.open_most, step(key.range.most));
  if (key.real) values.insert(values.end(), {"nan", "-nan", "inf", "-inf"});
  return values;
}

std::vector<std::string> values_inside(const RangedKey& key) {
  std::vector<std::string> values;
  const auto add = [&](double value) {
    values.push_back(key.real ? fmt::format("{:.17e}", value) : fmt::format("{:.0f}", value));
  };
  if (key.range.has_least() && !key.range.open_least) add(key.range.least);
  if (key.range.has_most() && !key.range.open_most) add(key.range.most);
  return values;
}

template <typename Options>
Status read(const RangedKey& key, const std::string& value) {
  const auto node = parse_toml(key.heading + "\n" + key.key + " = " + value + "\n", "a.toml");
  if (!node.ok()) return node.status();
  Options options;
  return OptionBinder(*node, "").bind(options);
}

template <typename Options>
class OptionRanges : public testing::Test {};
using AllOptions = testing::Types<train::RunOptions, reader::GenerateOptions>;
TYPED_TEST_SUITE(OptionRanges, AllOptions);

TYPED_TEST(OptionRanges, a_number_beyond_either_end_is_refused_by_file_line_and_key) {
  const auto keys = RangedKeys::of<TypeParam>();
  EXPECT_GT(keys.size(), 30u);
  for (const RangedKey& key : keys) {
    const std::string place = key.heading.empty() ? "a.toml:2: " : "a.toml:3: ";
    for (const std::string& value : values_outside(key)) {
      const Status status = read<TypeParam>(key, value);
      EXPECT_EQ(status.code(), Status::Code::bad_request) << key.path << " = " << value;
      EXPECT_TRUE(status.message().starts_with(place + key.path)) << status.message();
    }
    for (const std::string& value : values_inside(key))
      EXPECT_TRUE(read<TypeParam>(key, value).ok()) << read<TypeParam>(key, value).message();
  }
}

}  // namespace
}  // namespace recmill::cli
