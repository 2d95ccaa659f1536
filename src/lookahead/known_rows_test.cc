// SPDX-License-Identifier: Apache-2.0
#include "lookahead/known_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace recmill::lookahead {
namespace {

using Ids = KnownRows<int64_t>;

TEST(KnownRows, are_those_of_a_map_whatever_comes_and_goes) {
  std::mt19937_64 random(7);
  Ids ids;
  std::map<int64_t, Ids::Id> expected;
  std::vector<bool> fresh;
  for (int round = 0; round < 300; ++round) {
    std::set<int64_t> named;
    while (named.size() < 100)
      named.insert(static_cast<int64_t>(random() % 5000) << (random() % 40));
    const std::vector<int64_t> rows(named.begin(), named.end());
    std::vector<Ids::Id> found(rows.size());
    ids.find_or_add(rows, found, fresh);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto [known, added] = expected.emplace(rows[i], found[i]);
      EXPECT_EQ(fresh[i], added);
      EXPECT_EQ(known->second, found[i]);
      EXPECT_EQ(ids.row(found[i]), rows[i]);
    }
    std::vector<Ids::Id> removed;
    for (auto known = expected.begin(); known != expected.end();) {
      if (random() % 3 != 0) {
        ++known;
        continue;
      }
      removed.push_back(known->second);
      known = expected.erase(known);
    }
    ids.remove(removed);
    EXPECT_EQ(ids.count(), std::ssize(expected));
  }
}

}  // namespace
}  // namespace recmill::lookahead
