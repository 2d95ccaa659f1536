// SPDX-License-Identifier: Apache-2.0
// Every number of a configuration: what its range leaves out is refused by file, line and key.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "config/option_binder.h"
#include "config/testing/option_keys.h"
#include "reader/synthetic/generate.h"
#include "run/options/run_options.h"

namespace recmill::config {
namespace {

std::string number(const OptionKey& key, double value) {
  return key.kind == OptionKey::Kind::real ? fmt::format("{:.17e}", value)
                                           : fmt::format("{:.0f}", value);
}

/// Values just beyond the ends of the key's range, and of reals those that are no numbers.
std::vector<std::string> values_outside(const OptionKey& key) {
  const bool real = key.kind == OptionKey::Kind::real;
  const Range& range = key.range;
  // Of whole numbers above 2^53 the next one that is a double is farther away.
  const auto step = [&](double end) { return std::max(real ? 1e-9 : 1.0, std::abs(end) / 1e9); };
  std::vector<std::string> values;
  if (range.has_least())
    values.push_back(number(key, range.open_least ? range.least : range.least - step(range.least)));
  if (range.has_most())
    values.push_back(number(key, range.open_most ? range.most : range.most + step(range.most)));
  if (real) values.insert(values.end(), {"nan", "-nan", "inf", "-inf", "1e39", "-1e39"});
  return values;
}

std::vector<std::string> values_inside(const OptionKey& key) {
  std::vector<std::string> values;
  if (key.range.has_least() && !key.range.open_least)
    values.push_back(number(key, key.range.least));
  if (key.range.has_most() && !key.range.open_most) values.push_back(number(key, key.range.most));
  return values;
}

template <typename Options>
Status read(const OptionKey& key, const std::string& value) {
  const auto node = parse_toml(key.heading() + "\n" + key.key + " = " + value + "\n", "a.toml");
  if (!node.ok()) return node.status();
  Options options;
  return bind_options(*node, options);
}

template <typename Options>
class OptionRanges : public testing::Test {};
using AllOptions = testing::Types<train::RunOptions, reader::GenerateOptions>;
TYPED_TEST_SUITE(OptionRanges, AllOptions);

TYPED_TEST(OptionRanges, a_number_beyond_either_end_is_refused_by_file_line_and_key) {
  size_t numbers = 0;
  for (const OptionKey& key : OptionKeys::of<TypeParam>()) {
    if (key.kind != OptionKey::Kind::real && key.kind != OptionKey::Kind::integer) continue;
    ++numbers;
    const std::string place = key.heading().empty() ? "a.toml:2: " : "a.toml:3: ";
    for (const std::string& value : values_outside(key)) {
      const Status status = read<TypeParam>(key, value);
      EXPECT_EQ(status.code(), Status::Code::bad_request) << key.path() << " = " << value;
      EXPECT_TRUE(status.message().starts_with(place + key.path() + ": ")) << status.message();
    }
    for (const std::string& value : values_inside(key))
      EXPECT_TRUE(read<TypeParam>(key, value).ok()) << read<TypeParam>(key, value).message();
  }
  EXPECT_GT(numbers, 30u);
}

// Options that no configuration was read into.
TYPED_TEST(OptionRanges, defaults_are_inside) {
  EXPECT_TRUE(check_ranges(TypeParam()).ok()) << check_ranges(TypeParam()).message();
}

}  // namespace
}  // namespace recmill::config
