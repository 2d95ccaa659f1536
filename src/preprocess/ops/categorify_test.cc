// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/categorify.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace recmill::preprocess {

TEST(Dictionary, equals_a_map_under_random_ids_and_every_version_of_it_can_be_asked) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Random random(seed, Purpose::test);
    Dictionary dictionary(100000, Dictionary::WhenFull::error);
    std::map<uint64_t, uint64_t> model;
    IdCounts counts;
    for (uint64_t batch = 0; batch < 60; ++batch) {
      std::vector<uint64_t> ids(random.below(700, batch, 1)), rows(ids.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        ids[i] = random.below(20000, batch * 1000 + i, 2) * (seed == 1 ? 1 : uint64_t{1} << 40);
      }
      dictionary.add_all(ids, rows, counts);
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto expected = model.emplace(ids[i], model.size() + 1).first->second;
        ASSERT_EQ(rows[i], expected) << "seed " << seed << " batch " << batch;
      }
      ASSERT_EQ(dictionary.version(), static_cast<int64_t>(model.size()));
      const int64_t version = dictionary.version() / 2;
      IdCounts unseen;
      dictionary.find_all(ids, version, rows, unseen);
      int64_t missing = 0;
      for (size_t i = 0; i < ids.size(); ++i) {
        const uint64_t row = model[ids[i]];
        const bool known = row <= static_cast<uint64_t>(version);
        missing += known ? 0 : 1;
        ASSERT_EQ(rows[i], known ? row : 0);
      }
      ASSERT_EQ(unseen.unseen, missing);
    }
    EXPECT_EQ(counts, IdCounts());
  }
}

TEST(Dictionary, gives_the_same_rows_in_place_and_one_by_one) {
  Dictionary one(1000, Dictionary::WhenFull::error), all(1000, Dictionary::WhenFull::error);
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 130; ++i) ids.push_back(i * i % 71);
  IdCounts counts;
  std::vector<uint64_t> rows;
  for (const uint64_t id : ids) rows.push_back(one.add(id, counts));
  all.add_all(ids, ids, counts);
  EXPECT_EQ(ids, rows);
}

TEST(Dictionary, a_full_one_refuses_clamps_or_drops_new_ids_and_still_knows_the_old) {
  for (const auto when_full :
       {Dictionary::WhenFull::error, Dictionary::WhenFull::clamp, Dictionary::WhenFull::drop}) {
    Dictionary dictionary(3, when_full);
    std::vector<uint64_t> rows(4);
    IdCounts counts;
    dictionary.add_all(std::vector<uint64_t>{10, 11, 12, 10}, rows, counts);
    const bool clamp = when_full == Dictionary::WhenFull::clamp;
    EXPECT_EQ(rows, (std::vector<uint64_t>{1, 2, clamp ? 0 : kNoRow, 1}));
    EXPECT_EQ(counts.clamped, clamp);
    EXPECT_EQ(counts.dropped, when_full == Dictionary::WhenFull::drop);
    EXPECT_EQ(counts.refused, when_full == Dictionary::WhenFull::error);
    EXPECT_EQ(dictionary.version(), 2);
  }
}

TEST(Dictionary, restored_from_its_first_ids_it_grows_as_it_did) {
  std::vector<uint64_t> ids, rows(5000), again(5000);
  for (uint64_t i = 0; i < 5000; ++i) ids.push_back(Random::mix(i % 3000));
  Dictionary dictionary(5000, Dictionary::WhenFull::error);
  IdCounts counts;
  dictionary.add_all(ids, rows, counts);
  Dictionary restored(5000, Dictionary::WhenFull::error);
  ASSERT_TRUE(restored.restore(dictionary.ids().first(1234)).ok());
  restored.add_all(std::span(ids).subspan(1234), std::span(again).subspan(1234), counts);
  for (size_t i = 1234; i < ids.size(); ++i) ASSERT_EQ(again[i], rows[i]) << i;
  EXPECT_FALSE(restored.restore(std::vector<uint64_t>{5, 6, 5}).ok());
  EXPECT_FALSE(
      Dictionary(3, Dictionary::WhenFull::error).restore(std::vector<uint64_t>{5, 6, 7}).ok());
}

TEST(Dictionary, an_id_has_row_0_until_it_was_seen_often_enough_and_the_sightings_are_state) {
  Dictionary dictionary(4, Dictionary::WhenFull::clamp, 3);
  IdCounts counts;
  const std::vector<uint64_t> ids{7, 8, 7, 9, 7, 7, 8, 8, 9, 9, 5, 5, 5};
  const std::vector<uint64_t> expected{0, 0, 0, 0, 1, 1, 0, 2, 0, 3, 0, 0, 0};
  std::vector<uint64_t> rows(ids.size());
  dictionary.add_all(ids, rows, counts);
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(counts.clamped, 1) << "5, when its turn came";
  EXPECT_EQ(dictionary.version(), 3);
  EXPECT_EQ(std::vector<uint64_t>(dictionary.sightings().begin(), dictionary.sightings().end()),
            (std::vector<uint64_t>{7, 8, 7, 9, 8, 9, 5, 5, 5}));
  // As it was after the first seven: one id with a row, five sightings.
  Dictionary again(4, Dictionary::WhenFull::clamp, 3);
  ASSERT_TRUE(again.restore(dictionary.ids().first(1)).ok());
  ASSERT_TRUE(again.restore_sightings(dictionary.sightings().first(5)).ok());
  std::vector<uint64_t> rest(ids.size() - 7);
  IdCounts no_counts;
  again.add_all(std::span(ids).subspan(7), rest, no_counts);
  EXPECT_EQ(rest, std::vector<uint64_t>(expected.begin() + 7, expected.end()));
  EXPECT_FALSE(again.restore_sightings(std::vector<uint64_t>{1, 1, 1, 1}).ok());
  ASSERT_TRUE(again.restore(dictionary.ids().first(2)).ok());
  EXPECT_FALSE(again.restore_sightings(std::vector<uint64_t>{1, 1, 1}).ok()) << "a row is left";
}

// Else two epochs would make every id of a min_count of 2 common.
TEST(Dictionary, later_passes_over_the_data_make_no_id_common) {
  for (const auto when_full : {Dictionary::WhenFull::clamp, Dictionary::WhenFull::drop}) {
    Dictionary dictionary(3, when_full, 2);
    IdCounts counts;
    const uint64_t full = when_full == Dictionary::WhenFull::drop ? kNoRow : 0;
    const std::vector<uint64_t> ids{7, 8, 7, 9, 5, 9, 6, 6};
    std::vector<uint64_t> rows(ids.size());
    dictionary.add_all(ids, rows, counts);
    EXPECT_EQ(rows, (std::vector<uint64_t>{0, 0, 1, 0, 0, 2, 0, full}));
    Dictionary resumed(3, when_full, 2);
    ASSERT_TRUE(resumed.restore(dictionary.ids()).ok());
    ASSERT_TRUE(resumed.restore_sightings(dictionary.sightings()).ok());
    for (Dictionary* again : {&dictionary, &resumed}) {
      again->stop_counting();
      for (int epoch = 1; epoch < 4; ++epoch) {
        again->add_all(ids, rows, counts);
        EXPECT_EQ(rows, (std::vector<uint64_t>{1, 0, 1, 2, 0, 2, full, full})) << epoch;
      }
      EXPECT_EQ(again->sightings().size(), 6u);
    }
  }
}

TEST(Dictionary, what_evaluation_does_not_find_is_as_it_is_told) {
  Dictionary dictionary(4, Dictionary::WhenFull::error);
  IdCounts counts;
  dictionary.add(7, counts);
  EXPECT_EQ(dictionary.find(7, 1, counts, kNoRow), 1u);
  EXPECT_EQ(dictionary.find(8, 1, counts, kNoRow), kNoRow);
  EXPECT_EQ(dictionary.find(8, 1, counts), 0u);
  EXPECT_EQ(counts.unseen, 2);
}

}  // namespace recmill::preprocess
