// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/stats_page.h"

#include <gmock/gmock.h>

namespace recmill::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FeatureStats stats_of_1000_samples() {
  FeatureStats stats;
  stats.samples = 1000;
  stats.label_mean = 0.25;
  stats.dense = {
      {"a<b", 100, -2, 3, 0.5, 50.0, {{-2, -1.75, 300, 30}, {0, 0, 5, 5}, {2, 4, 595, 60}}}};
  stats.ids.resize(1);
  IdColumnStats& ids = stats.ids[0];
  ids.name = "C1";
  ids.missing = 200;
  ids.missing_labels = 20;
  ids.lookups = 800;
  ids.longest = 1;
  ids.cardinality = 90;
  ids.frequent = {{255, 400, 100}, {1, 8, 8}};
  return stats;
}

}  // namespace

TEST(StatsPage, tells_how_a_column_spreads_and_its_label_by_value) {
  const std::string page = stats_page("x & y", stats_of_1000_samples());
  EXPECT_THAT(page, HasSubstr("<h1>Columns of x &amp; y</h1>"));
  EXPECT_THAT(page, HasSubstr("<h3>a&lt;b</h3>"));
  EXPECT_THAT(page, Not(HasSubstr("a<b")));
  EXPECT_THAT(page, HasSubstr("-2 to -1.75</span>"));
  EXPECT_THAT(page, HasSubstr("30.0 %, label 0.100"));
  EXPECT_THAT(page, HasSubstr("10.0 %, label 0.500"));            // missing
  EXPECT_THAT(page, HasSubstr("<td>30.0 %</td><td>0.5 %</td>"));  // below 0, 0
  // The bucket of five samples is too small to count.
  EXPECT_THAT(page, HasSubstr("<td>0.100 to 0.500</td>"));
}

TEST(StatsPage, tells_the_frequent_ids_and_what_is_left) {
  const std::string page = stats_page("x", stats_of_1000_samples());
  EXPECT_THAT(page, HasSubstr("255</span>"));
  EXPECT_THAT(stats_page("x", stats_of_1000_samples(), [](const std::string&) { return true; }),
              HasSubstr("ff</span>"));
  EXPECT_THAT(page, HasSubstr("50.0 %, label 0.250"));
  EXPECT_THAT(page, HasSubstr("The other 88 ids take 49.0 % of the lookups."));
  EXPECT_THAT(page, HasSubstr("Missing in 20.0 % of the samples, label 0.100."));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

TEST(StatsPage, of_no_rows_and_of_many_columns_is_whole) {
  EXPECT_THAT(stats_page("x", FeatureStats()), HasSubstr("</html>"));
  FeatureStats many = stats_of_1000_samples();
  many.dense.resize(300, many.dense[0]);
  EXPECT_THAT(stats_page("x", many), HasSubstr("The first 200 of 300."));
}

}  // namespace recmill::cli
