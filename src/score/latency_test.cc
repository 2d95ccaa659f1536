// SPDX-License-Identifier: Apache-2.0
#include "score/latency.h"

#include <gtest/gtest.h>

#include "base/json/json.h"

namespace recmill::train {

TEST(Percentile, of_one_value_is_that_value) {
  const std::vector<double> one{7.0};
  for (const int64_t per_mille : {1, 500, 999, 1000}) EXPECT_EQ(percentile(one, per_mille), 7.0);
}

TEST(Percentile, is_a_value_that_was_measured_the_smallest_that_covers_the_share) {
  std::vector<double> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  EXPECT_EQ(percentile(values, 500), 500.0);
  EXPECT_EQ(percentile(values, 999), 999.0);
  EXPECT_EQ(percentile(values, 1000), 1000.0);
  EXPECT_EQ(percentile(values, 1), 1.0);
  values.push_back(1001.0);
  EXPECT_EQ(percentile(values, 500), 501.0);
  EXPECT_EQ(percentile(values, 999), 1000.0);
  const std::vector<double> two{1.0, 2.0};
  EXPECT_EQ(percentile(two, 500), 1.0);
  EXPECT_EQ(percentile(two, 501), 2.0);
}

TEST(Percentile, of_equal_values_is_their_value) {
  const std::vector<double> ties{1.0, 3.0, 3.0, 3.0, 9.0};
  EXPECT_EQ(percentile(ties, 200), 1.0);
  EXPECT_EQ(percentile(ties, 201), 3.0);
  EXPECT_EQ(percentile(ties, 800), 3.0);
  EXPECT_EQ(percentile(ties, 801), 9.0);
}

TEST(Percentiles, sort_and_tell_milliseconds) {
  const Json json = percentiles({0.003, 0.001, 0.002});
  EXPECT_EQ(json.value("p50", 0.0), 2.0);
  EXPECT_EQ(json.value("p99_9", 0.0), 3.0);
  EXPECT_EQ(json.value("largest", 0.0), 3.0);
  EXPECT_DOUBLE_EQ(json.value("mean", 0.0), 2.0);
}

TEST(Latency, of_a_request_is_that_of_its_last_rank_whose_stages_add_up) {
  const std::vector<std::vector<RequestTimes>> by_rank{
      {{0, 1, 2, 3}, {0, 1, 1, 1}, {1, 1, 1, 1}}, {{0, 9, 0, 0}, {0, 1, 1, 0.5}, {0, 2, 1, 1}}};
  const auto times = slowest(by_rank);
  const std::vector<RequestTimes> expected{{0, 9, 0, 0}, {0, 1, 1, 1}, {1, 1, 1, 1}};
  EXPECT_EQ(times, expected);
  const Json report = latency_report(times);
  EXPECT_EQ(report["milliseconds"]["largest"], 9000.0);
  EXPECT_EQ(report["milliseconds"]["p50"], 4000.0);
  EXPECT_EQ(report["stages"]["prepare"]["largest"], 9000.0);
  EXPECT_EQ(report["stages"]["lookup"]["p50"], 1000.0);
}

}  // namespace recmill::train
