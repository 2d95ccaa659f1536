// SPDX-License-Identifier: Apache-2.0
#include "kernels/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace recmill::kernels {
namespace {

TemplateSpec example() {
  TemplateSpec spec;
  spec.name = "example";
  spec.tunables = {{"samples", "samples a task", {1, 2, 4}}, {"prefetch", "lookups", {0, 16}}};
  spec.valid = [](const FeatureShape& shape, ParameterValues values, const DeviceSpec&) {
    return values[0] * shape.dim <= 32;
  };
  spec.scratch_bytes = [](const FeatureShape&, ParameterValues) { return int64_t{0}; };
  return spec;
}

TEST(Schedule, has_a_name_that_states_it_whole_and_is_read_back) {
  const Schedule schedule{"example", {{"samples", 4}, {"prefetch", -1}}};
  EXPECT_EQ(schedule.name(), "example samples=4 prefetch=-1");
  EXPECT_EQ(*parse_schedule(schedule.name()), schedule);
  EXPECT_EQ(*parse_schedule("plain"), (Schedule{"plain", {}}));
}

TEST(Schedule, is_not_read_from_other_text) {
  for (const char* text :
       {"", " ", "samples=4", "example samples", "example samples=", "example =4",
        "example samples=4x", "example samples=4  prefetch=1", " example",
        "example samples=99999999999999999999", "example samples=+4"}) {
    const auto schedule = parse_schedule(text);
    ASSERT_FALSE(schedule.ok()) << text;
    EXPECT_EQ(schedule.status().message(), std::string("not a schedule: '") + text + "'");
  }
}

TEST(Schedule, candidates_are_the_valid_part_of_the_product_in_its_order) {
  FeatureShape shape;
  shape.dim = 16;
  std::vector<std::string> names;
  for (const auto& schedule : candidates(example(), shape, {})) names.push_back(schedule.name());
  EXPECT_THAT(
      names, testing::ElementsAre("example samples=1 prefetch=0", "example samples=1 prefetch=16",
                                  "example samples=2 prefetch=0", "example samples=2 prefetch=16"));
  TemplateSpec plain = example();
  plain.tunables.clear();
  plain.valid = [](const FeatureShape&, ParameterValues, const DeviceSpec&) { return true; };
  EXPECT_EQ(candidates(plain, shape, {}), (std::vector<Schedule>{{"example", {}}}));
}

TEST(Schedule, values_are_checked_against_the_template) {
  const auto values = [](const char* text) { return values_of(*parse_schedule(text), example()); };
  EXPECT_EQ(*values("example samples=2 prefetch=16"), (std::vector<int64_t>{2, 16}));
  const auto error = [&](const char* text) { return values(text).status().message(); };
  EXPECT_EQ(error("other samples=2 prefetch=16"),
            "schedule 'other samples=2 prefetch=16': its template is not 'example'");
  EXPECT_EQ(error("example samples=2"),
            "schedule 'example samples=2': template 'example' has 2 parameters");
  EXPECT_EQ(error("example prefetch=16 samples=2"),
            "schedule 'example prefetch=16 samples=2': its parameter 'prefetch' must be samples");
  EXPECT_EQ(error("example samples=3 prefetch=16"),
            "schedule 'example samples=3 prefetch=16': samples cannot be 3");
}

}  // namespace
}  // namespace recmill::kernels
