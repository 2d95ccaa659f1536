// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/profile_page.h"

#include <gmock/gmock.h>

#include "base/json/json.h"
#include "cli/pages/run_page.h"
#include "page/chart.h"

namespace recmill::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json profile() {
  const auto stage = [](double seconds, double waiting, int64_t sent, int64_t received) {
    return Json{{"seconds", seconds},
                {"waiting", waiting},
                {"hidden", waiting / 2},
                {"sent", sent},
                {"received", received}};
  };
  Json of = Json::array();
  for (const int rank : {0, 1}) {
    Json stages;
    stages["data"] = stage(0.5, 0.5, 0, 0);
    stages["lookup"] = stage(1.5, 0.25, 3 << 20, 1 << 19);
    stages["evaluation"] = stage(0.0, 0.0, 0, 0);
    of.push_back({{"seconds", 2.0},
                  {"stages", stages},
                  {"steps", 2},
                  {"spans", {{"data", 0.0, 0.5, 0.0}, {"lookup", 0.5, 2.0, 0.25}}},
                  {"peak_bytes", (300 + rank) << 20},
                  {"row_bytes", 100 << 20},
                  {"name", "rank " + std::to_string(rank) + " on <h>"}});
  }
  return of;
}

TEST(ProfilePage, tells_every_rank_and_stage_in_which_time_was_spent) {
  const std::string text = profile_text(profile());
  EXPECT_THAT(text,
              HasSubstr("rank 1 on <h>            lookup                1.500  75.0 %      0.250"
                        "      0.125         3.00         0.50\n"));
  EXPECT_THAT(text, Not(HasSubstr("evaluation")));
  const std::string page = profile_sections(profile());
  EXPECT_THAT(page, HasSubstr("rank 1 on &lt;h&gt;"));
  EXPECT_THAT(page, HasSubstr("lookup: 1.5 s, of it waiting 250 ms"));
  // Two steady steps of a second each: three quarters of it are lookups.
  EXPECT_THAT(page, HasSubstr("The mean of 2 steady steps."));
  EXPECT_THAT(page, HasSubstr("title=\"data 250 ms, lookup 750 ms\""));
  EXPECT_THAT(page, HasSubstr("<td class=\"text\">lookup</td><td>750 ms</td><td>75.0 %</td>"
                              "<td>125 ms</td>"));
  EXPECT_THAT(page, HasSubstr("<span>0</span><span>500 ms</span><span>1 s</span>"));
  EXPECT_THAT(page, HasSubstr("<td>75.0 %</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<h>")));
}

TEST(ProfilePage, tells_the_memory_of_every_rank_beyond_its_rows) {
  EXPECT_THAT(profile_text(profile()),
              HasSubstr("rank 1 on <h>                       301.0      100.0        201.0\n"));
  EXPECT_THAT(profile_sections(profile()),
              HasSubstr("<td class=\"text\">rank 1 on &lt;h&gt;</td><td>301.0</td><td>100.0</td>"
                        "<td>201.0</td>"));
}

TEST(ProfilePage, a_rank_without_spans_is_no_picture_and_no_failure) {
  Json one = profile();
  one[1]["spans"] = Json::array();
  EXPECT_THAT(profile_sections(one), HasSubstr("rank 1 on"));
  EXPECT_THAT(profile_sections(Json::array()), HasSubstr("No step of training was a steady one"));
}

TEST(RunPage, has_curves_a_step_and_the_configuration) {
  RunPage run{"a & b", {{"samples_per_second", 1234.4}, {"auc", 0.75}}, {}, "name = \"<x>\"\n"};
  run.summary["profile"] = profile();
  for (const int iteration : {10, 20, 30})
    run.metrics.push_back({{"kind", "train"},
                           {"iteration", iteration},
                           {"log_loss", 1.0 / iteration},
                           {"samples_per_second", 1000.0 * iteration}});
  run.metrics.push_back({{"kind", "eval"}, {"iteration", 30}, {"log_loss", 0.5}});
  const std::string page = run_page(run);
  EXPECT_THAT(page, HasSubstr("<h1>a &amp; b</h1>"));
  EXPECT_THAT(page, HasSubstr("<b>1234</b>samples a second"));
  EXPECT_THAT(page, HasSubstr("<title>evaluation: 0.5</title>"));
  EXPECT_THAT(page, HasSubstr(">30 k</text>"));       // samples a second
  EXPECT_THAT(page, Not(HasSubstr("<h3>AUC</h3>")));  // no line has any
  EXPECT_THAT(page, HasSubstr("name = &quot;&lt;x&gt;&quot;"));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

TEST(LineChart, ticks_are_round_and_hold_all_points) {
  EXPECT_EQ(page::round_ticks(0.0, 100.0, 5),
            (std::vector<double>{0.0, 20.0, 40.0, 60.0, 80.0, 100.0}));
  EXPECT_EQ(page::round_ticks(3.0, 47.0, 5),
            (std::vector<double>{0.0, 10.0, 20.0, 30.0, 40.0, 50.0}));
  EXPECT_EQ(page::round_ticks(-1.0, 1.0, 5), (std::vector<double>{-1.0, -0.5, 0.0, 0.5, 1.0}));
  for (const auto& [least, most] : {std::pair{0.0, 0.0}, {5.0, 5.0}, {1e-9, 1e9}, {0.31, 0.32}}) {
    const auto ticks = page::round_ticks(least, most, 5);
    EXPECT_LE(ticks.front(), least);
    EXPECT_GE(ticks.back(), most);
    EXPECT_LE(ticks.size(), 7u);
    EXPECT_GE(ticks.size(), 3u);
  }
}

}  // namespace
}  // namespace recmill::cli
