// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/lookahead_page.h"

#include <gmock/gmock.h>

namespace recmill::cli {
namespace {

using testing::HasSubstr;

TEST(LookaheadPage, has_a_section_a_case_with_other_caches_and_designs) {
  train::LookaheadCount count;
  count.of = {.lookahead = 16, .prefetch = 4, .slots = 1000};
  count.ranks = 4;
  count.batches = 60;
  count.distinct = 20'000;
  count.fetched = 5'000;
  count.lru_fetched = 10'000;
  count.static_fetched = 19'000;
  count.none = {.fetched = 30'000, .gradients = 30'000};
  count.designs[3] = MovedRows{.fetched = 5'000, .written_back = 4'000, .weights = 77};
  const std::string page = lookahead_page("run <a>", {count});
  EXPECT_THAT(page, HasSubstr("run &lt;a&gt;: a cache that knows the next batches"));
  EXPECT_THAT(page, HasSubstr("16 batches ahead, 4 fetched ahead, 1000 slots"));
  EXPECT_THAT(page, HasSubstr("5000 rows, 25.0 %"));
  EXPECT_THAT(page, HasSubstr("LRU"));
  EXPECT_THAT(page, HasSubstr("<td class=\"text\">none</td><td>30000</td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"text\">forward</td><td>5000</td><td>4000</td><td>0</td>"
                              "<td>77</td><td>0</td><td>9077</td>"));
  count.of.slots = 0;
  EXPECT_THAT(lookahead_page("a", {count}), testing::Not(HasSubstr("LRU")));
  count.of.prefetch = 20;
  EXPECT_THAT(lookahead_page("a", {count}), HasSubstr("16 batches ahead, 16 fetched ahead"));
}

}  // namespace
}  // namespace recmill::cli
