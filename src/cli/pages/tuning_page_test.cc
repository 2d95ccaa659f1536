// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/tuning_page.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/schedule/task_map.h"

namespace recmill::cli {
namespace {

using namespace kernels::tune;  // NOLINT: this file is about nothing else

ModelSpec model_of(int64_t features) {
  ModelSpec model;
  for (int64_t f = 0; f < features; ++f) {
    model.features.emplace_back();
    model.features.back().name = "f" + std::to_string(f);
    model.features.back().table = static_cast<int>(f);
    model.tables.emplace_back();
    model.tables.back().name = "t<" + std::to_string(f) + ">";
  }
  return model;
}

FamilyTuning family_of(const std::string& name, int64_t features) {
  FamilyTuning family;
  family.times.family = name;
  family.times.values = {{{128, 4096}, {}, 90.0}, {{256, 0}, {}, 80.0}};
  for (int64_t c = 0; c < 2; ++c) {
    FeatureClass of{{}, {}, name == "row_update" ? "adam" : ""};
    of.shape.rows = 1000 * (c + 1);
    of.shape.dim = 8 << c;
    of.shape.bags = {c == 0 ? 0.0 : 50.0, 3.0, 0.25, 70};
    for (int64_t f = c; f < features; f += 2) of.features.push_back(f);
    family.times.classes.push_back(of);
    for (ValueTimes& at : family.times.values)
      at.classes.push_back(
          {{{{"slow", {}}, 9e3, 0.1, ""}, {{"quick", {{"x", c}}}, 1e3 * double(c + 1), 0.1, ""}},
           10.0,
           2.0,
           4000.0});
    family.class_nanoseconds.push_back(c == 0 ? 1e6 : 3e6);
  }
  family.choice = *choose(family.times);
  family.measured_nanoseconds = 2.2e6;
  family.default_nanoseconds = 3.3e6;
  family.task_nanoseconds = 4.2e6;
  return family;
}

TuningRecord record_of(int64_t features) {
  return {{"a machine", "gcc", "abc", "work & load", "0", 2, true},
          {family_of("embedding_pool", features), family_of("row_update", features)},
          1e9};
}

size_t count_of(const std::string& page, const std::string& what) {
  size_t count = 0;
  for (size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++count;
  return count;
}

TEST(TuningPage, tells_of_each_class_its_schedule_its_times_and_its_share_of_the_limit) {
  const std::string page = tuning_page(record_of(4), model_of(4));
  EXPECT_NE(page.find("<h1>work &amp; load: tuned kernels</h1>"), std::string::npos);
  // Class 1: three quarters of the time; 2 features x 4000 bytes at 1e9 / 2 bytes a second are
  // 16 us of 3 ms.
  EXPECT_NE(page.find("<code>quick x=1</code></td><td>75.00 %</td><td>4 µs</td><td>3 ms</td>"
                      "<td>1 %</td></tr>"),
            std::string::npos);
  EXPECT_NE(page.find("<b>2.2 ms</b>a batch, tuned, 2 threads"), std::string::npos);
  EXPECT_NE(page.find("<b>3.3 ms</b>with default schedules, 2 threads"), std::string::npos);
  EXPECT_NE(page.find("title=\"f1, f3\">f1, f3</td><td>2</td><td>2000</td><td>16</td>"),
            std::string::npos);
  EXPECT_NE(page.find("t&lt;1&gt;, t&lt;3&gt;"), std::string::npos);
  EXPECT_EQ(page.find("t<1>"), std::string::npos);
  EXPECT_EQ(count_of(page, "<circle "), 4u);
  EXPECT_EQ(count_of(page, "<td class=\"text\">adam</td>"), 2u);
  // The longest first.
  EXPECT_LT(page.find("quick x=1</code>"), page.find("quick x=0</code>"));
}

TEST(TuningPage, tells_of_one_class_and_of_default_schedules_that_stay) {
  TuningRecord record = record_of(1);
  FamilyTuning& family = record.families[0];
  const std::string two = tuning_page(record, model_of(1));
  EXPECT_NE(two.find("tasks of at most 256 samples, nothing of a core's own cache.</p>"),
            std::string::npos);
  EXPECT_NE(two.find("<b>2</b>classes"), std::string::npos);
  family.times.values.resize(1);
  family.times.values[0].value = {kernels::kWholeFeature, 0, true};
  family.times.values[0].classes.resize(1);
  family.times.classes.resize(1);
  family.class_nanoseconds.resize(1);
  family.choice = *choose(family.times);
  const std::string one = tuning_page(record, model_of(1));
  EXPECT_NE(one.find("<b>1</b>feature<"), std::string::npos);
  EXPECT_NE(one.find("<b>1</b>class<"), std::string::npos);
  EXPECT_NE(one.find("<p>No schedules were faster fused than the default ones, which stay.</p>"),
            std::string::npos);
  EXPECT_NE(one.find("<b>3.3 ms</b>a batch with the default schedules, which stay, 2 threads"),
            std::string::npos);
  EXPECT_EQ(count_of(one, "a batch, tuned"), 1u);  // of the other family
  EXPECT_EQ(one.find(std::to_string(kernels::kWholeFeature)), std::string::npos);
}

TEST(TuningPage, tells_of_a_gpu_what_was_measured_there) {
  TuningRecord record = record_of(4);
  record.memory_rate = 0.0;
  record.of.threads = 1;
  record.families.pop_back();
  FamilyTuning& family = record.families[0];
  family.times.values[0].value = {.blocks = 1};
  family.times.values[1].value = {.blocks = 3};
  family.choice = *choose(family.times);
  const std::string page = tuning_page(record, model_of(4));
  EXPECT_NE(page.find("<p>a machine; gcc; commit abc.</p>"), std::string::npos);
  EXPECT_NE(page.find("an occupancy of 3 blocks of an SM.</p>"), std::string::npos);
  EXPECT_NE(page.find("<td>75.00 %</td><td>4 µs</td><td>3 ms</td></tr>"), std::string::npos);
  for (const char* of_cpu : {"GB/s", "memory limit", "tasks of at most", "own cache", "thread"})
    EXPECT_EQ(page.find(of_cpu), std::string::npos) << of_cpu;
}

TEST(TuningPage, stands_by_itself_and_is_well_formed) {
  const std::string page = tuning_page(record_of(4), model_of(4));
  for (const char* outside : {"<script", "http", "src=", "@import", "url("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  for (const char* word : {"nan", "inf"})
    EXPECT_EQ(page.find("\"" + std::string(word)), std::string::npos);
  // Every element that is opened is closed, in order.
  std::vector<std::string> open;
  for (size_t at = page.find("<html"); at != std::string::npos; at = page.find('<', at + 1)) {
    const size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string inside = page.substr(at + 1, end - at - 1);
    const std::string name = inside.substr(0, inside.find(' '));
    if (inside.back() == '/' || name == "meta") continue;
    if (name[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << inside;
    ASSERT_EQ(open.back(), name.substr(1));
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(TuningPage, stays_small_whatever_the_number_of_features) {
  EXPECT_LT(tuning_page(record_of(10000), model_of(10000)).size(), 20000u);
}

}  // namespace
}  // namespace recmill::cli
