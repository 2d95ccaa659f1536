// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_check/gpu_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/json/json.h"

namespace recmill::bench {
namespace {

using ::testing::HasSubstr;

TEST(GpuPage, DrawsOursRivalsAndTheLimit) {
  const char* const texts[] = {
      R"({"bench":"gpu_check","case":"gpu_test","metric":"tests_passed","value":9,"unit":"tests","rival":null,
          "ratio":null,"spread":null,"limit":10,"of_limit":0.9,"machine":null,"commit":"abc","device":"A & B"})",
      R"({"bench":"embedding","case":"forward","metric":"time_per_batch","value":0.5,"unit":"ms","rival":"torch",
          "ratio":3,"spread":0.01,"limit":0.25,"of_limit":0.5,"machine":"m","commit":"abc","device":"A & B"})",
      R"({"bench":"embedding","case":"forward","metric":"time_per_batch","value":0.5,"unit":"ms",
          "rival":"published","ratio":0.8,"spread":null,"limit":0.25,"of_limit":0.5,"machine":"m","commit":"abc"})",
      R"({"bench":"train","case":"kaggle","metric":"samples_per_second","value":9000,"unit":"samples/s",
          "rival":"eager","ratio":4,"spread":0.1,"limit":null,"of_limit":null,"machine":"m","commit":"abc"})"};
  std::vector<Json> lines;
  for (const char* text : texts) lines.push_back(Json::parse(text));
  const std::string page = gpu_page(lines);
  EXPECT_THAT(page, HasSubstr("<h1>Recmill on A &amp; B</h1>"));
  EXPECT_THAT(page, HasSubstr("<b>9 of 10</b>tests passed"));
  EXPECT_THAT(page, HasSubstr("<h3>embedding forward</h3>"));
  EXPECT_THAT(page, HasSubstr(">0.5 ms</text>"));
  EXPECT_THAT(page, HasSubstr(">1.5 ms</text>"));  // three times ours
  EXPECT_THAT(page, HasSubstr(">0.4 ms</text>"));
  EXPECT_THAT(page, HasSubstr("limit 0.25 ms"));
  EXPECT_THAT(page, HasSubstr("<td>50 %</td>"));
  EXPECT_THAT(page, HasSubstr("<h3>train kaggle</h3>"));
  EXPECT_THAT(page, HasSubstr(">9000 samples/s</text>"));
  EXPECT_THAT(page, HasSubstr(">2250 samples/s</text>"));  // a fourth of ours
  // The longest bar's spread, 10 % either way, ends where the longest without one does.
  EXPECT_THAT(page, HasSubstr("x2=\"900.0\" y2=\"21.5\" stroke=\"var(--ink)\"/><text x=\"906.0\" "
                              "y=\"26\">9000 samples/s<"));
}

}  // namespace
}  // namespace recmill::bench
