// SPDX-License-Identifier: Apache-2.0
#include "hotset/decide_hot_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "hotset/hot_curve.h"
#include "hotset/hot_cutoff.h"
#include "hotset/hot_inputs.h"
#include "stats/testing/drawn_lookups.h"

namespace recmill::hotset {
namespace {

using stats::AccessCounter;

TEST(HotCutoff, is_exact_from_the_shortest_decimal) {
  EXPECT_EQ(cutoff_of(0.07, 100), 7);  // 0.07 * 100 is 7.000000000000001
  EXPECT_EQ(cutoff_of(0.29, 100), 29);
  EXPECT_EQ(cutoff_of(0.012, 1000), 12);
  EXPECT_EQ(cutoff_of(0.0121, 1000), 13);
  EXPECT_EQ(cutoff_of(1e-6, 45'840'617), 46);
  EXPECT_EQ(cutoff_of(1e-300, 1'000'000), 1);
  EXPECT_EQ(cutoff_of(1.0, 1000), 1000);
  EXPECT_EQ(cutoff_of(0.5, 0), 1);
  EXPECT_EQ(cutoff_of(2.5e17, 1000), int64_t{1} << 62);
  EXPECT_EQ(cutoff_of(1e300, 1000), int64_t{1} << 62);
  EXPECT_EQ(cutoff_of(0.1, 9'000'000'000'000'000'001), 900'000'000'000'000'001);
}

/// Input i of 1,000 looks up rows i mod (1 + i mod 50), (7i + 3) mod (1 + 3i mod 80) and i mod 7.
class ThreeColumns : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int64_t rows : {20'000, 20'000, 7}) {
      TableSpec& table = model_.tables.emplace_back();
      table.name = "t" + std::to_string(model_.tables.size() - 1);
      table.rows = rows;
      table.dim = 16;
      problem_.tables.push_back({table.name, rows, 64, rows == 7, -1});
      model_.features.emplace_back().table = static_cast<int>(model_.features.size());
    }
    batch_.samples = 1000;
    batch_.features.resize(3);
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t rows[] = {i % (1 + i % 50), (7 * i + 3) % (1 + 3 * i % 80), i % 7};
      for (size_t f = 0; f < 3; ++f) batch_.features[f].rows.push_back(rows[f]);
    }
    for (SparseFeature& feature : batch_.features)
      for (int64_t i = 0; i <= 1000; ++i) feature.offsets.push_back(i);
    counts_.emplace(*AccessCounter::create(model_, "digest"));
    counts_->add(batch_, pool_);
    problem_.bytes = 1 << 20;
  }

  HotInputs inputs_of(const HotSet& set) {
    HotInputs inputs(problem_, model_, *counts_, set);
    inputs.add(batch_, pool_);
    EXPECT_EQ(inputs.inputs(), 1000);
    EXPECT_EQ(inputs.lookups(), 3000);
    return inputs;
  }
  HotSet decided() {
    const auto set = decide_hot_set(problem_, *counts_);
    EXPECT_TRUE(set.ok()) << set.status().message();
    return set.ok() ? *set : HotSet();
  }
  std::string refusal() { return decide_hot_set(problem_, *counts_).status().message(); }

  ThreadPool pool_{2};
  ModelSpec model_;
  SparseBatch batch_;
  HotProblem problem_;
  std::optional<AccessCounter> counts_;
};

TEST_F(ThreeColumns, has_the_rows_and_inputs_of_a_threshold) {
  problem_.threshold = 0.012;
  const HotSet set = decided();
  EXPECT_EQ(set.cutoff, 12);
  EXPECT_EQ(set.inputs, 1000);
  EXPECT_EQ(inputs_of(set).figures(), (HotFigures{57, 3648, 678, 349}));
}

TEST_F(ThreeColumns, has_the_least_cutoff_whose_rows_fit) {
  problem_.bytes = 4096;
  HotSet set = decided();
  EXPECT_EQ(set.cutoff, 11);
  EXPECT_EQ(inputs_of(set).figures().hot_inputs, 723);
  for (HotProblemTable& table : problem_.tables) table.row_bytes = 128;  // with Adagrad's state
  set = decided();
  EXPECT_EQ(set.cutoff, 27);
  EXPECT_EQ(inputs_of(set).figures(), (HotFigures{32, 4096, 403, 770}));
}

TEST_F(ThreeColumns, fills_the_bytes_with_the_hottest_rows) {
  problem_.bytes = 4096;
  problem_.fill = true;
  const HotSet set = decided();
  EXPECT_EQ(set.cutoff, 0);
  EXPECT_EQ(inputs_of(set).figures().hot_rows, 64);
  EXPECT_EQ(inputs_of(set).figures().hot_inputs, 741);
}

TEST_F(ThreeColumns, is_refused_where_too_few_bytes_are_given) {
  problem_.bytes = 447;
  EXPECT_THAT(refusal(), ::testing::HasSubstr("hotset.bytes: 447 is less than the 448 bytes"));
  problem_.bytes = 448;
  EXPECT_EQ(decided().cutoff, 94);
  problem_.bytes = 3647;
  problem_.threshold = 0.012;
  EXPECT_EQ(refusal(),
            "hotset.threshold: 0.012 of 1000 inputs makes rows of 12 lookups hot, which take 3648 "
            "bytes; hotset.bytes is 3647, in which rows of 13 fit");
}

TEST_F(ThreeColumns, counts_at_every_cutoff_what_the_set_of_that_cutoff_has) {
  const HotInputs by_least = inputs_of(decided());
  const HotCurve curve(problem_, *counts_);
  EXPECT_EQ(curve.cutoffs().size(), 44u);
  EXPECT_EQ(curve.cutoffs().front(), 1);
  EXPECT_EQ(curve.cutoffs().back(), 94);
  for (int64_t cutoff = 1; cutoff <= 100; ++cutoff) {
    problem_.threshold = static_cast<double>(cutoff) / 1000;
    EXPECT_EQ(curve.at(cutoff, by_least.by_least()), inputs_of(decided()).figures()) << cutoff;
  }
}

TEST_F(ThreeColumns, names_the_tables_that_keep_inputs_cold) {
  problem_.threshold = 0.012;
  const HotSet set = decided();
  const std::vector<int64_t> cold = inputs_of(set).cold_by_one_table();
  EXPECT_EQ(cold[2], 0);
  for (const size_t t : {0, 1}) {
    HotSet all_hot = set;
    all_hot.tables[t] = {all_hot.tables[t].table, all_hot.tables[t].rows, true, {}};
    EXPECT_EQ(inputs_of(all_hot).figures().hot_inputs, 678 + cold[t]) << t;
  }
}

// Bags, shared tables, counts beyond 256, tables of several devices: against a plain reference.
class DrawnLookups : public ::testing::Test {
 protected:
  static constexpr int64_t kInputs = 3000;

  void SetUp() override {
    counts_.add(batch_, pool_);
    stats::count_plainly(batch_, plain_);
    for (const TableSpec& table : model_.tables)
      problem_.tables.push_back({table.name, table.rows, table.rows % 97 + 4, false, -1});
    problem_.tables[1].always_hot = true;
  }

  std::vector<int64_t> plain_bytes(const HotSet& set) const {
    std::vector<int64_t> bytes(static_cast<size_t>(problem_.devices));
    for (size_t t = 0; t < set.tables.size(); ++t)
      for (size_t d = 0; d < bytes.size(); ++d)
        if (problem_.tables[t].device < 0 || problem_.tables[t].device == static_cast<int>(d))
          bytes[d] += set.tables[t].hot() * problem_.tables[t].row_bytes;
    return bytes;
  }
  /// Rows of so many lookups or more.
  HotSet plain_set(int64_t cutoff) const {
    HotSet set{"digest", kInputs, cutoff, {}};
    for (size_t t = 0; t < model_.tables.size(); ++t) {
      HotTable& table = set.tables.emplace_back();
      table = {model_.tables[t].name, model_.tables[t].rows, problem_.tables[t].always_hot, {}};
      if (table.all_hot) continue;
      for (const auto& [row, count] : plain_[t])
        if (count >= cutoff) table.hot_rows.push_back(row);
    }
    return set;
  }
  HotFigures plain_figures(const HotSet& set) const {
    HotFigures figures;
    for (size_t t = 0; t < set.tables.size(); ++t) {
      figures.hot_rows += set.tables[t].hot();
      figures.hot_bytes += set.tables[t].hot() * problem_.tables[t].row_bytes;
    }
    for (int64_t i = 0; i < kInputs; ++i) {
      int64_t far = 0;
      for (size_t f = 0; f < batch_.features.size(); ++f) {
        const SparseFeature& feature = batch_.features[f];
        const HotTable& table = set.tables[static_cast<size_t>(model_.features[f].table)];
        for (int64_t k = feature.offsets[i]; k < feature.offsets[i + 1]; ++k)
          far += !table.all_hot && !std::ranges::binary_search(table.hot_rows, feature.rows[k]);
      }
      figures.hot_inputs += far == 0;
      figures.far_lookups += far;
    }
    return figures;
  }

  ThreadPool pool_{2};
  const ModelSpec model_ = stats::small_model();
  const SparseBatch batch_ = stats::draw(0, kInputs);
  AccessCounter counts_ = stats::new_counter();
  stats::PlainCounts plain_;
  HotProblem problem_;
};

TEST_F(DrawnLookups, are_hot_as_a_plain_count_says) {
  problem_.bytes = 1 << 30;
  HotInputs inputs(problem_, model_, counts_, plain_set(1));
  inputs.add(batch_, pool_);
  const HotCurve curve(problem_, counts_);
  int64_t last = 0, rows = -1;
  for (const int64_t cutoff : curve.cutoffs()) {
    const HotSet set = plain_set(cutoff);
    EXPECT_EQ(curve.at(cutoff, inputs.by_least()), plain_figures(set)) << cutoff;
    EXPECT_GT(cutoff, last);
    EXPECT_NE(set.hot(), rows) << cutoff;
    if (last > 0) {
      EXPECT_EQ(plain_set(cutoff - 1).hot(), rows) << cutoff;
    }
    last = cutoff;
    rows = set.hot();
  }
  EXPECT_GT(last, 257);
}

TEST_F(DrawnLookups, are_decided_for_the_device_that_has_least_room) {
  for (const int devices : {1, 2, 3}) {
    problem_.devices = devices;
    for (size_t t = 0; t < problem_.tables.size(); ++t)
      problem_.tables[t].device = devices == 3 ? -1 : static_cast<int>(t) % devices;
    for (const int64_t bytes : {9'000, 40'000, 90'000}) {
      SCOPED_TRACE(std::to_string(devices) + " devices, bytes " + std::to_string(bytes));
      problem_.bytes = bytes;
      problem_.fill = false;
      const auto set = decide_hot_set(problem_, counts_);
      ASSERT_TRUE(set.ok()) << set.status().message();
      EXPECT_EQ(*set, plain_set(set->cutoff));
      EXPECT_LE(std::ranges::max(plain_bytes(*set)), bytes);
      EXPECT_GT(std::ranges::max(plain_bytes(plain_set(set->cutoff - 1))), bytes);
      problem_.fill = true;
      const auto filled = decide_hot_set(problem_, counts_);
      ASSERT_TRUE(filled.ok());
      EXPECT_TRUE(check_hot_set(*filled, model_.tables).ok());
      EXPECT_LE(std::ranges::max(plain_bytes(*filled)), bytes);
      for (size_t t = 0; t < set->tables.size();
           ++t)  // what the cutoff makes hot is of the hottest
        EXPECT_TRUE(std::ranges::includes(filled->tables[t].hot_rows, set->tables[t].hot_rows));
    }
  }
}

TEST_F(DrawnLookups, are_counted_the_same_in_any_batches) {
  problem_.bytes = 20'000;
  const HotSet set = *decide_hot_set(problem_, counts_);
  HotInputs whole(problem_, model_, counts_, set), cut(problem_, model_, counts_, set);
  whole.add(batch_, pool_);
  std::vector<uint8_t> is_hot;
  for (int64_t i = 0; i < kInputs; i += 700) {
    cut.add(stats::draw(i, std::min<int64_t>(700, kInputs - i)), pool_);
    is_hot.insert(is_hot.end(), cut.is_hot().begin(), cut.is_hot().end());
  }
  EXPECT_EQ(cut.figures(), whole.figures());
  EXPECT_EQ(cut.by_least(), whole.by_least());
  EXPECT_EQ(cut.cold_by_one_table(), whole.cold_by_one_table());
  EXPECT_EQ(is_hot, whole.is_hot());
  EXPECT_EQ(std::ranges::count(is_hot, 1), whole.figures().hot_inputs);
}

}  // namespace
}  // namespace recmill::hotset
