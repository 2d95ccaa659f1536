// SPDX-License-Identifier: Apache-2.0
#include "lookahead_plan/row_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace recmill {
namespace {

using Index = RowIndex<int64_t>;

TEST(RowIndex, is_a_map_whatever_comes_and_goes) {
  std::mt19937_64 random(7);
  Index index;
  std::map<int64_t, Index::Number> expected;
  std::vector<Index::Number> unused;
  for (Index::Number number = 0; number < 6000; ++number) unused.push_back(number);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> rows;
    for (int i = 0; i < 100; ++i)
      rows.push_back(static_cast<int64_t>(random() % 5000) << (random() % 40));
    std::vector<Index::Number> found(rows.size());
    index.find(rows, found);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto known = expected.find(rows[i]);
      EXPECT_EQ(found[i], known == expected.end() ? Index::kNone : known->second);
    }
    for (const int64_t row : rows) {
      if (expected.contains(row)) continue;
      index.add(row, unused.back(), row * 3);
      expected[row] = unused.back();
      unused.pop_back();
    }
    std::vector<Index::Number> removed;
    for (auto known = expected.begin(); known != expected.end();) {
      EXPECT_EQ(index.row(known->second), known->first);
      EXPECT_EQ(index.known(known->second), known->first * 3);
      if (random() % 3 != 0) {
        ++known;
        continue;
      }
      removed.push_back(known->second);
      known = expected.erase(known);
    }
    index.remove(removed);
    unused.insert(unused.end(), removed.begin(), removed.end());
    EXPECT_EQ(index.count(), std::ssize(expected));
  }
}

}  // namespace
}  // namespace recmill
