// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/tuning.h"

#include <gtest/gtest.h>

#include "base/json/json.h"

namespace recmill::kernels::tune {
namespace {

CandidateTime time_of(const char* schedule, double nanoseconds, const char* refused = "") {
  return {*parse_schedule(schedule), nanoseconds, 0.125, refused};
}

/// Two classes of two and one features, two values; the second value is faster as a whole.
FamilyTimes example() {
  FeatureClass small{{}, {0, 2}}, large{{}, {1}};
  small.shape.dim = 8;
  small.shape.rows = 1000;
  large.shape.dim = 64;
  large.shape.rows = 500;
  FamilyTimes times{"embedding_pool", {small, large}, {}};
  times.values.push_back({{64, 0},
                          {{{time_of("a x=1", 100.0), time_of("b x=1", 90.0)}, 40.0, 30.0},
                           {{time_of("a x=1", 500.0), time_of("b x=1", 700.0)}, 80.0, 10.0}},
                          900.0});
  times.values.push_back({{512, 1 << 19},
                          {{{time_of("a x=1", 80.0), time_of("b x=1", 80.0)}, 40.0, 30.0},
                           {{time_of("a x=1", 0.0, "wrong"), time_of("b x=1", 600.0)}, 80.0, 10.0}},
                          800.0});
  return times;
}

TEST(Tuning, takes_the_fastest_fused_value_and_the_winners_at_that_value) {
  const auto choice = choose(example());
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->value, (FusedParameters{512, 1 << 19}));
  ASSERT_EQ(choice->schedules.size(), 2u);
  EXPECT_EQ(choice->schedules[0].schedule.name(), "a x=1");  // the first of equals
  EXPECT_EQ(choice->schedules[1].schedule.name(), "b x=1");  // the other one is refused
  EXPECT_DOUBLE_EQ(choice->predicted_nanoseconds, 2 * 80.0 + 600.0);
  EXPECT_DOUBLE_EQ(choice->schedules[0].per_lookup * 40.0 + choice->schedules[0].per_sample * 30.0,
                   80.0);
}

TEST(Tuning, takes_one_schedule_for_all_where_the_fused_run_is_faster_with_it) {
  FamilyTimes times = example();
  EXPECT_EQ(shared(times, 0), (std::vector<size_t>{0, 0}));  // 700 of a, 880 of b
  EXPECT_EQ(shared(times, 1), (std::vector<size_t>{1, 1}));  // a is refused in one class
  times.values[0].shared_nanoseconds = 750.0;
  const auto choice = choose(times);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->value, (FusedParameters{64, 0}));
  for (const ChosenSchedule& chosen : choice->schedules) EXPECT_EQ(chosen.schedule.name(), "a x=1");
  EXPECT_DOUBLE_EQ(choice->predicted_nanoseconds, 2 * 100.0 + 500.0);
  times.values[0].classes[0].candidates[0].refused = "wrong";
  EXPECT_EQ(choose(times)->schedules[0].schedule.name(), "b x=1");
  times.values[0].classes[1].candidates[1].refused = "wrong";
  EXPECT_TRUE(shared(times, 0).empty());
  EXPECT_EQ(choose(times).status().message(), "embedding_pool: no schedule is right for all");
}

TEST(Tuning, the_schedule_for_all_leaves_the_default_one_to_classes_that_do_not_have_it) {
  FamilyTimes times = example();
  times.values.push_back(
      {{64, 0, true}, {{{time_of("b x=1", 90.0)}}, {{time_of("b x=1", 700.0)}}}, 1000.0});
  times.values[1].classes[0].candidates[0].nanoseconds = 70.0;
  EXPECT_EQ(shared(times, 1), (std::vector<size_t>{0, 1}));  // 740 of a with b, 760 of b
  times.values[0].classes[1].candidates.push_back(time_of("c x=1", 20.0));
  EXPECT_EQ(shared(times, 0), (std::vector<size_t>{1, 2}));  // 200 of c with b, 700 of a
  times.values[0].classes[0].candidates.pop_back();
  EXPECT_EQ(shared(times, 0), (std::vector<size_t>{0, 0}));  // nothing stands in for c
}

TEST(Tuning, takes_the_best_finalists_where_the_fused_run_is_faster_with_them) {
  FamilyTimes times = example();
  times.values[1].classes[0].candidates[0].among_all = 85.0;
  times.values[1].classes[0].candidates[1].among_all = 70.0;
  times.values[1].refined_nanoseconds = 790.0;
  times.values[1].beside_nanoseconds = 795.0;
  EXPECT_EQ(*refined(times, 0), *winners(times, 0));  // no finalists there
  EXPECT_EQ(*refined(times, 1), (std::vector<size_t>{1, 1}));
  times.values[1].classes[0].candidates[1].nanoseconds = 100.0;  // 100 * 70 is more than 80 * 85
  EXPECT_EQ(*refined(times, 1), (std::vector<size_t>{0, 1}));
  times.values[1].classes[0].candidates[1].nanoseconds = 80.0;
  const auto choice = choose(times);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->value, (FusedParameters{512, 1 << 19}));
  EXPECT_EQ(choice->schedules[0].schedule.name(), "b x=1");
  // Predicted by the local stage, but mapped to threads by what it took among all.
  EXPECT_DOUBLE_EQ(choice->predicted_nanoseconds, 2 * 80.0 + 600.0);
  EXPECT_DOUBLE_EQ(choice->schedules[0].per_lookup * 40.0 + choice->schedules[0].per_sample * 30.0,
                   70.0);
  times.values[1].beside_nanoseconds = 790.0;
  EXPECT_EQ(choose(times)->schedules[0].schedule.name(), "a x=1");
  times.values[1].beside_nanoseconds = 795.0;
  times.values[1].classes[0].candidates[1].order = Order::reorders;
  EXPECT_EQ(choose(times)->schedules[0].schedule.name(), "a x=1");
}

TEST(Tuning, takes_the_default_schedules_where_they_won_the_last_comparison) {
  FamilyTimes times = example();
  times.values.push_back({{64, 0, true}, times.values[0].classes, 1000.0});
  times.values[1].refined_nanoseconds = 790.0;
  times.values[1].beside_nanoseconds = 795.0;
  EXPECT_EQ(choose(times)->value, times.values[1].value);  // they were not in it
  times.values[2].beside_nanoseconds = 791.0;
  EXPECT_EQ(choose(times)->value, times.values[1].value);
  times.values[2].beside_nanoseconds = 789.0;
  EXPECT_EQ(choose(times)->value, times.values[2].value);
  EXPECT_EQ(choose(times)->schedules[0].schedule.name(), "b x=1");
}

TEST(Tuning, a_value_that_was_not_fused_is_no_candidate) {
  FamilyTimes times = example();
  times.values[1].fused_nanoseconds = 0.0;
  EXPECT_EQ(choose(times)->value, (FusedParameters{64, 0}));
  times.values[0].fused_nanoseconds = 0.0;
  EXPECT_EQ(choose(times).status().message(), "embedding_pool: nothing was measured to the end");
}

TEST(Tuning, a_value_that_spills_is_left_out_where_another_one_does_not) {
  FamilyTimes times = example();
  times.values[1].spilled_bytes = 8;
  EXPECT_FALSE(is_left_out(times, times.values[0]));
  EXPECT_TRUE(is_left_out(times, times.values[1]));
  EXPECT_EQ(choose(times)->value, times.values[0].value);
  const auto read = family_times_from_json(Json::parse(to_json(times).dump()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->values[1].spilled_bytes, 8);
  EXPECT_EQ(*choose(*read), *choose(times));
  times.values[0].spilled_bytes = 16;  // both: the faster one, though it were the other that does
  EXPECT_FALSE(is_left_out(times, times.values[1]));
  EXPECT_EQ(choose(times)->value, times.values[1].value);
  times.values[0].spilled_bytes = 0;
  times.values[0].fused_nanoseconds = 0.0;  // nothing else was measured
  EXPECT_EQ(choose(times)->value, times.values[1].value);
}

TEST(Tuning, times_of_before_spills_were_recorded_are_read) {
  const Json json = to_json(example());
  EXPECT_EQ(json.dump().find("spilled_bytes"), std::string::npos);
  EXPECT_EQ(family_times_from_json(json)->values[1].spilled_bytes, 0);
}

TEST(Tuning, a_class_without_a_right_schedule_is_an_error) {
  FamilyTimes times = example();
  times.values[1].classes[1].candidates[1].refused = "wrong too";
  EXPECT_EQ(choose(times).status().message(),
            "embedding_pool: no right schedule for feature 1 among 2; wrong");
}

TEST(Tuning, a_schedule_that_reorders_wins_only_where_that_is_allowed) {
  FamilyTimes times = example();
  times.values[1].classes[0].candidates[0].order = Order::reorders;
  times.values[1].classes[0].candidates[0].nanoseconds = 20.0;
  EXPECT_EQ(choose(times)->schedules[0].schedule.name(), "b x=1");
  EXPECT_DOUBLE_EQ(*price_of_order(times, 1), (2 * 80.0 + 600.0) / (2 * 20.0 + 600.0));
  EXPECT_DOUBLE_EQ(*price_of_order(times, 0), 1.0);
  const auto read = family_times_from_json(to_json(times));
  EXPECT_EQ(read->values[1].classes[0].candidates[0].order, Order::reorders);
  EXPECT_TRUE(read->deterministic);
  times.deterministic = false;
  EXPECT_EQ(choose(times)->schedules[0].schedule.name(), "a x=1");
}

TEST(Tuning, times_are_the_same_after_a_way_through_JSON) {
  FamilyTimes times = example();
  times.values[1].classes[0].candidates[1].among_all = 70.0;
  times.values[1].refined_nanoseconds = 790.0;
  times.values[1].beside_nanoseconds = 795.0;
  const Json json = Json::parse(to_json(times).dump());
  const auto read = family_times_from_json(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  FamilyTimes expected = times;
  expected.values[1].classes[1].candidates[0].spread = 0.0;  // refused: not timed
  EXPECT_EQ(*read, expected);
  EXPECT_EQ(to_json(*read).dump(), json.dump());
}

TEST(Tuning, damaged_times_are_an_error_that_names_the_key) {
  const auto error = [](const std::function<void(Json&)>& damage) {
    Json json = to_json(example());
    damage(json);
    const auto read = family_times_from_json(json);
    return read.ok() ? "no error" : read.status().message();
  };
  EXPECT_EQ(error([](Json& j) { j.erase("family"); }), "tuning times: no key family");
  EXPECT_EQ(error([](Json& j) { j["classes"] = 3; }), "tuning times: no list classes");
  EXPECT_EQ(error([](Json& j) { j["classes"][0]["dim"] = "8"; }),
            "tuning times: classes[].dim: a value of another type");
  EXPECT_EQ(error([](Json& j) { j["classes"][0]["pooling"] = "most"; }),
            "tuning times: pooling 'most' is unknown");
  EXPECT_EQ(error([](Json& j) { j["classes"][1]["features"] = Json::array(); }),
            "tuning times: a class without a feature");
  EXPECT_EQ(error([](Json& j) { j["values"][0]["classes"].erase(1); }),
            "tuning times: a value does not have all classes");
  EXPECT_EQ(error([](Json& j) { j["values"][0]["spilled_bytes"] = "8"; }),
            "tuning times: values[].spilled_bytes: a value of another type");
  EXPECT_EQ(
      error([](Json& j) { j["values"][0]["classes"][0]["candidates"][0]["schedule"] = "x y"; }),
      "not a schedule: 'x y'");
}

}  // namespace
}  // namespace recmill::kernels::tune
