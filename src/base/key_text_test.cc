// SPDX-License-Identifier: Apache-2.0
#include "base/key_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace recmill {
namespace {

TEST(KeyText, other_parts_are_another_text) {
  using Parts = std::vector<std::string>;
  std::set<std::string> texts;
  const Parts lists[] = {{}, {""}, {"", ""}, {"a,b"}, {"a", "b"}, {"ab"}, {"1:a"}, {"1", "a"}};
  for (const Parts& first : lists) {
    for (const Parts& second : lists) texts.insert(KeyText().add_all(first).add_all(second).text());
  }
  EXPECT_EQ(texts.size(), 64u);
}

TEST(KeyText, other_numbers_are_another_text) {
  std::set<std::string> texts;
  const double numbers[] = {0.11155111, 0.11155115, 0.1, std::nextafter(0.1, 1), 0.0, -0.0, 1};
  for (const double number : numbers) texts.insert(KeyText().add(number).text());
  EXPECT_EQ(texts.size(), 7u);
  EXPECT_NE(KeyText().add(1).add(12).text(), KeyText().add(11).add(2).text());
  EXPECT_EQ(KeyText().add(true).text(), KeyText().add(1).text());
}

}  // namespace
}  // namespace recmill
