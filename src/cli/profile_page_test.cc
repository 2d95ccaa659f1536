// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_page.h"

#include <gmock/gmock.h>

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
  const std::string page = profile_page("a & b", profile());
  EXPECT_THAT(page, HasSubstr("<h1>a &amp; b: what ranks spent their time on</h1>"));
  EXPECT_THAT(page, HasSubstr("rank 1 on &lt;h&gt;"));
  EXPECT_THAT(page, HasSubstr("lookup: 1.5e+03 ms, of it waiting 250 ms"));
  EXPECT_THAT(page, HasSubstr("<td>75.0 %</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<h>")));
}

TEST(ProfilePage, tells_the_memory_of_every_rank_beyond_its_rows) {
  EXPECT_THAT(profile_text(profile()),
              HasSubstr("rank 1 on <h>                       301.0      100.0        201.0\n"));
  EXPECT_THAT(profile_page("a", profile()),
              HasSubstr("<td class=\"text\">rank 1 on &lt;h&gt;</td><td>301.0</td><td>100.0</td>"
                        "<td>201.0</td>"));
}

TEST(ProfilePage, a_rank_without_spans_is_no_picture_and_no_failure) {
  Json one = profile();
  one[1]["spans"] = Json::array();
  EXPECT_THAT(profile_page("a", one), HasSubstr("rank 1 on"));
  EXPECT_THAT(profile_page("a", Json::array()), HasSubstr("</html>"));
}

}  // namespace
}  // namespace recmill::cli
