// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/record.h"

#include <gtest/gtest.h>

namespace recmill::kernels::tune {
namespace {

TuningRecord example() {
  FeatureClass of{{}, {0, 1}};
  of.shape.rows = 10;
  of.shape.dim = 8;
  FamilyTuning family;
  family.times = {
      "embedding_pool",
      {of},
      {{{64, 1024},
        {{{{*parse_schedule("a x=1"), 12.5, 0.1, ""}, {*parse_schedule("b"), 0.0, 0.0, "wrong"}},
          40.0,
          8.0}},
        33.0}}};
  family.choice = *choose(family.times);
  family.measured_nanoseconds = 30.0;
  family.class_nanoseconds = {25.0};
  family.task_nanoseconds = 55.0;
  family.default_nanoseconds = 40.0;
  FamilyTuning update = family;
  update.times.family = "row_update";
  update.times.classes[0].kind = "rowwise_adagrad";
  update.times.values[0].classes[0].candidates[0].schedule = *parse_schedule("dense_sums leaves=8");
  update.choice = *choose(update.times);
  return {{"machine", "gcc", "abc", "name", "0123", 2, true}, {family, update}, 5e10};
}

TEST(TuningRecord, is_read_back_as_it_was_written) {
  const TuningRecord record = example();
  const auto text = record_text(record);
  ASSERT_TRUE(text.ok());
  const auto read = parse_record(*text, "r.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, record);
  EXPECT_EQ(*record_text(*read), *text);
  EXPECT_NE(read->family("embedding_pool"), nullptr);
  ASSERT_NE(read->family("row_update"), nullptr);
  EXPECT_EQ(read->family("row_update")->times.classes[0].kind, "rowwise_adagrad");
  EXPECT_EQ(read->family("another"), nullptr);
}

TEST(TuningRecord, with_any_byte_changed_is_refused_in_one_line) {
  const std::string text = *record_text(example());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    const auto read = parse_record(damaged, "r.json");
    ASSERT_FALSE(read.ok()) << i;
    ASSERT_EQ(read.status().message(), "r.json: damaged, its checksum does not hold; tune again")
        << i;
  }
  EXPECT_FALSE(parse_record("", "r.json").ok());
  EXPECT_FALSE(parse_record(text.substr(0, text.size() - 5), "r.json").ok());
}

TEST(TuningRecord, whose_choice_does_not_follow_from_its_times_is_refused) {
  TuningRecord record = example();
  record.families[0].choice.schedules[0].per_lookup *= 2;
  EXPECT_EQ(parse_record(*record_text(record), "r.json").status().message(),
            "r.json: families[].choice does not follow from its times");
}

TEST(TuningRecord, whose_fastest_kernels_spilled_leads_to_the_choice_that_left_them_out) {
  TuningRecord record = example();
  FamilyTuning& family = record.families[0];
  family.times.values.push_back(family.times.values[0]);
  family.times.values[0].value = {.blocks = 8};
  family.times.values[0].spilled_bytes = 16;
  family.times.values[1].value = {.blocks = 2};
  family.times.values[1].fused_nanoseconds *= 2;
  family.choice = *choose(family.times);
  EXPECT_EQ(family.choice.value.blocks, 2);
  const auto read = parse_record(*record_text(record), "r.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, record);
  family.times.values[0].spilled_bytes = 0;
  EXPECT_EQ(parse_record(*record_text(record), "r.json").status().message(),
            "r.json: families[].choice does not follow from its times");
}

TEST(TuningRecord, names_a_users_templates_where_there_are_some) {
  TuningRecord record = example();
  EXPECT_EQ(record_text(record)->find("\"templates\""), std::string::npos);
  record.of.templates = "ab";
  EXPECT_EQ(parse_record(*record_text(record), "r.json")->of.templates, "ab");
}

TEST(TuningRecord, is_foreign_with_its_reason) {
  const TunedFor here = example().of;
  EXPECT_EQ(foreign_because(here, here), "");
  TunedFor other = here;
  other.commit = "def";
  other.workload = "another name";
  EXPECT_EQ(foreign_because(other, here), "");
  other.machine = "elsewhere";
  EXPECT_EQ(foreign_because(other, here),
            "it was tuned for machine 'elsewhere', this is 'machine'");
  other = here;
  other.model = "9";
  EXPECT_EQ(foreign_because(other, here),
            "it was tuned for tables and features '9', this is '0123'");
  other = here;
  other.templates = "ab";
  EXPECT_EQ(foreign_because(other, here), "");
  EXPECT_EQ(foreign_because(here, other), "");
  TunedFor edited = other;
  edited.templates = "cd";
  EXPECT_EQ(foreign_because(other, edited),
            "it was tuned for kernels.templates of the digest 'ab', this is 'cd'");
  other = here;
  other.deterministic = false;
  EXPECT_EQ(foreign_because(other, here),
            "its schedules may change the order of summation, and deterministic is true");
  EXPECT_EQ(foreign_because(here, other), "");
}

TEST(ModelDigest, changes_with_what_kernels_see_and_not_with_names) {
  ModelSpec model;
  TableSpec table;
  table.name = "t";
  table.rows = 10;
  table.dim = 4;
  model.tables.push_back(table);
  model.features.emplace_back();
  const std::string digest = model_digest(model);
  ModelSpec other = model;
  other.tables[0].name = "u";
  EXPECT_EQ(model_digest(other), digest);
  other.tables[0].dim = 5;
  EXPECT_NE(model_digest(other), digest);
  other = model;
  other.features[0].pooling = Pooling::mean;
  EXPECT_NE(model_digest(other), digest);
}

}  // namespace
}  // namespace recmill::kernels::tune
