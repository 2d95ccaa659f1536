// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/synthetic_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "reader/reader_contract.h"

namespace recmill::reader {
namespace {

SyntheticOptions small_criteo() {
  SyntheticOptions options;
  options.rows = 20000;
  options.eval_rows = 2000;
  options.cardinality_scale = 0.001;
  return options;
}

/// Bags, a sequence, drift, groups, times, 64-bit ids and a chosen skew.
SyntheticOptions with_bags() {
  SyntheticOptions options;
  options.shape = SyntheticShape::columns;
  options.rows = 20000;
  options.eval_rows = 0;
  options.id_bits = 64;
  options.groups = 50;
  options.time_step = 7;
  options.dense.push_back({.name = "x", .maximum = 50});
  options.ids.push_back({.name = "bag",
                         .cardinality = 5000,
                         .top_percent = 1,
                         .top_access_percent = 40,
                         .mean_length = 5,
                         .max_length = 20,
                         .empty_share = 0.25});
  options.ids.push_back({.name = "watched",
                         .cardinality = 300,
                         .zipf = 0.8,
                         .drift = 2000,
                         .mean_length = 30,
                         .max_length = 50,
                         .sequence = true});
  options.planted.crosses = 0;
  return options;
}

/// As a workload's lines make columns; clicks are decided by one of the three.
SyntheticOptions with_lines() {
  SyntheticOptions options;
  options.shape = SyntheticShape::columns;
  options.rows = 20000;
  options.eval_rows = 2000;
  for (const char* name : {"f0", "f1", "f2"}) {
    options.ids.push_back({.name = name,
                           .cardinality = 700,
                           .law = IdLaw::power,
                           .lengths = LengthLaw::normal,
                           .mean_length = 9,
                           .deviation = 6,
                           .max_length = 25,
                           .empty_share = 0.3,
                           .line = 1,
                           .direct = true});
  }
  options.planted.crosses = 0;
  options.planted.columns = 1;
  return options;
}

SyntheticOptions with_popularity(double popularity, SyntheticOptions options) {
  options.popularity = popularity;
  return options;
}

/// Every law, permuted and direct ids, one id and bags; nothing is crossed, so that all columns
/// have quantiles in common.
SyntheticOptions with_every_law() {
  SyntheticOptions options;
  options.shape = SyntheticShape::columns;
  options.rows = 400000;
  for (IdLaw law : {IdLaw::zipf, IdLaw::uniform, IdLaw::power}) {
    for (bool direct : {false, true}) {
      for (int64_t most : {1, 5}) {
        options.ids.push_back({.name = "f" + std::to_string(options.ids.size()),
                               .cardinality = 2000,
                               .law = law,
                               .mean_length = most == 1 ? 1.0 : 3.0,
                               .max_length = most,
                               .direct = direct});
      }
    }
  }
  options.ids.push_back({.name = "drifts", .cardinality = 2000, .drift = 3000});
  options.planted.crosses = 0;
  options.planted.columns = 2;
  return options;
}

/// Pearson's statistic of a column's ids in `rows` rows, one in `step` of all, against the shares
/// that it says; mean cardinality - 1 where ids are independent.
double distance_from_law(const IdSource& source, int64_t rows, int64_t step) {
  std::vector<double> counts(static_cast<size_t>(source.column().cardinality));
  double lookups = 0, chi2 = 0;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t element = row / step % 2 % source.length(row);
    ++counts[source.position(row, element)];
    ++lookups;
  }
  for (size_t p = 0; p < counts.size(); ++p) {
    const double expected = lookups * source.mean_share(static_cast<int64_t>(p), rows);
    chi2 += (counts[p] - expected) * (counts[p] - expected) / expected;
  }
  return chi2;
}

std::shared_ptr<const PlantedModel> model_of(const SyntheticOptions& options) {
  auto model = PlantedModel::build(options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::make_shared<const PlantedModel>(*std::move(model));
}

ColumnBatch read(const std::shared_ptr<const PlantedModel>& model, int64_t first, int64_t count,
                 int threads) {
  ThreadPool pool(threads);
  SyntheticReader reader(model, 0, model->options().rows, pool);
  ColumnBatch batch;
  EXPECT_TRUE(reader.read(0, first, count, batch).ok());
  return batch;
}

/// Cells of sample i, as bits: NaN equals NaN.
std::vector<uint64_t> cells(const ColumnBatch& batch, int64_t i) {
  std::vector<uint64_t> row{std::bit_cast<uint32_t>(batch.labels[i])};
  for (const auto& column : batch.dense) row.push_back(std::bit_cast<uint32_t>(column[i]));
  for (const auto& column : batch.ids) {
    row.push_back(static_cast<uint64_t>(column.offsets[i + 1] - column.offsets[i]));
    for (int64_t k = column.offsets[i]; k < column.offsets[i + 1]; ++k) {
      row.push_back(column.ids[k]);
    }
  }
  if (!batch.groups.empty()) row.push_back(batch.groups[i]);
  if (!batch.times.empty()) row.push_back(static_cast<uint64_t>(batch.times[i]));
  return row;
}

ReaderCase contract_case(const std::string& name, SyntheticOptions synthetic, Subset subset) {
  DataOptions options;
  options.format = DataFormat::synthetic;
  synthetic.rows = 1000;
  synthetic.eval_rows = 500;
  options.synthetic = synthetic;
  return {name, options, subset, false};
}

INSTANTIATE_TEST_SUITE_P(
    Synthetic, ReaderContract,
    ::testing::Values(contract_case("criteo", small_criteo(), Subset::train),
                      contract_case("bags", with_bags(), Subset::train),
                      contract_case("bags_all", with_bags(), Subset::all),
                      contract_case("lines", with_lines(), Subset::train),
                      contract_case("popular", with_popularity(0.5, with_bags()), Subset::all),
                      contract_case("bags_held_out", with_bags(), Subset::eval)),
    ReaderCase::name_of);

}  // namespace

TEST(SyntheticReader, gives_a_row_the_same_cells_from_any_position_and_thread_count) {
  for (const SyntheticOptions& options :
       {small_criteo(), with_bags(), with_lines(), with_popularity(0.3, small_criteo()),
        with_popularity(0.7, with_bags()), with_popularity(1, with_lines())}) {
    const auto model = model_of(options);
    const ColumnBatch whole = read(model, 0, 3000, 1);
    ASSERT_EQ(whole.samples, 3000);
    for (int64_t first : {0, 1, 511, 512, 513, 1999}) {
      for (int64_t count : {1, 511, 512, 513, 1000}) {
        const ColumnBatch part = read(model, first, count, 3);
        ASSERT_EQ(part.first, first);
        ASSERT_EQ(part.samples, count);
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(cells(part, i), cells(whole, first + i));
      }
    }
  }
}

TEST(SyntheticReader, ends_where_its_rows_end) {
  const auto model = model_of(small_criteo());
  EXPECT_EQ(read(model, 19990, 100, 2).samples, 10);
  EXPECT_EQ(read(model, 20000, 100, 2).samples, 0);
  EXPECT_EQ(read(model, 30000, 100, 2).samples, 0);
  const ColumnBatch none = read(model, 30000, 100, 2);
  EXPECT_EQ(none.ids[0].offsets, std::vector<int64_t>{0});
}

TEST(SyntheticReader, holds_out_the_rows_after_the_training_rows) {
  const auto model = model_of(small_criteo());
  ThreadPool pool(1);
  SyntheticReader all(model, 0, 22000, pool), held_out(model, 20000, 22000, pool);
  ColumnBatch a, b;
  ASSERT_TRUE(all.read(0, 20500, 10, a).ok());
  ASSERT_TRUE(held_out.read(3, 500, 10, b).ok());
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(cells(a, i), cells(b, i));
  EXPECT_EQ(held_out.counts().rows, 10);
}

TEST(SyntheticReader, gives_at_most_the_rows_that_are_wanted_and_at_most_those_there_are) {
  DataOptions options;
  options.format = DataFormat::synthetic;
  options.synthetic = small_criteo();
  ThreadPool pool(1);
  for (const auto& [wanted, given] : {std::pair<int64_t, int64_t>{0, 2000},
                                      {7, 7},
                                      {std::numeric_limits<int64_t>::max(), 2000}}) {
    options.rows = wanted;
    const auto reader = open_synthetic_reader(options, Subset::eval, pool);
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    EXPECT_EQ(*(*reader)->rows(), given);
  }
}

TEST(SyntheticReader, keeps_the_shares_lengths_and_values_that_were_asked_for) {
  const auto model = model_of(with_bags());
  const ColumnBatch batch = read(model, 0, 20000, 2);
  std::map<uint64_t, int64_t> counts;
  int64_t empty = 0, longest = 0;
  for (int64_t i = 0; i < batch.samples; ++i) {
    const int64_t length = batch.ids[0].offsets[i + 1] - batch.ids[0].offsets[i];
    empty += length == 0;
    longest = std::max(longest, length);
  }
  for (uint64_t id : batch.ids[0].ids) ++counts[id];
  EXPECT_NEAR(empty / 20000.0, 0.25, 0.015);
  EXPECT_EQ(longest, 20);
  const double lookups = static_cast<double>(batch.ids[0].ids.size());
  EXPECT_NEAR(lookups / static_cast<double>(20000 - empty), 5.0, 0.1);
  EXPECT_LE(counts.size(), 5000u);
  std::vector<int64_t> sorted;
  for (const auto& [id, count] : counts) sorted.push_back(count);
  std::sort(sorted.rbegin(), sorted.rend());
  int64_t top = 0;
  for (int i = 0; i < 50; ++i) top += sorted[i];
  EXPECT_NEAR(static_cast<double>(top) / lookups, 0.40, 0.01);
  EXPECT_EQ(std::set(batch.groups.begin(), batch.groups.end()).size(), 50u);
  EXPECT_EQ(batch.times[10] - batch.times[9], 7);
}

TEST(SyntheticReader, shapes_criteo_like_criteo) {
  const auto model = model_of(small_criteo());
  EXPECT_EQ(model->schema().dense.size(), 13u);
  EXPECT_EQ(model->schema().ids.size(), 26u);
  const ColumnBatch batch = read(model, 0, 20000, 2);
  int64_t missing = 0, negative = 0, missing_ids = 0;
  for (int64_t i = 0; i < batch.samples; ++i) {
    missing += std::isnan(batch.dense[0][i]);
    negative += batch.dense[1][i] < 0;
    missing_ids += batch.ids[2].offsets[i + 1] == batch.ids[2].offsets[i];
    ASSERT_FALSE(std::isnan(batch.dense[1][i]));
    ASSERT_EQ(batch.ids[0].offsets[i + 1], i + 1);
  }
  EXPECT_NEAR(missing / 20000.0, 0.1, 0.01);
  EXPECT_NEAR(negative / 20000.0, 0.1, 0.01);
  EXPECT_NEAR(missing_ids / 20000.0, 0.1, 0.01);
  for (const IdColumn& column : batch.ids) {
    for (uint64_t id : column.ids) ASSERT_LT(id, uint64_t{1} << 32);
  }
}

TEST(SyntheticReader, hides_the_rank_and_never_gives_two_ids_one_number) {
  const auto model = model_of(small_criteo());
  for (size_t c : {size_t{2}, size_t{9}}) {
    const IdSource& source = model->ids()[c];
    std::set<uint64_t> seen;
    for (int64_t p = 0; p < source.column().cardinality; ++p) seen.insert(source.raw_id(p));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), source.column().cardinality);
  }
  EXPECT_NE(model->ids()[0].raw_id(0), model->ids()[1].raw_id(0));
}

TEST(SyntheticReader, moves_popularity_by_the_drift) {
  SyntheticOptions options = with_bags();
  options.rows = 200000;
  const auto model = model_of(options);
  const IdSource& source = model->ids()[1];
  // Drift 2000 a million rows: 400 positions, more than one turn of 300. In the first 1,000 rows
  // the top moves from position 0 to 298.
  std::vector<int64_t> counts(300);
  std::vector<int64_t> early(300), late(300);
  int64_t lookups = 0;
  for (int64_t row = 0; row < options.rows; row += 5) {
    const int64_t position = source.position(row, 0);
    ++counts[position];
    ++lookups;
    if (row < 1000) ++early[position];
    if (row >= 49000 && row < 51000) ++late[position];
  }
  EXPECT_LE((std::max_element(early.begin(), early.end()) - early.begin() + 2) % 300, 2);
  // After 50,000 rows, 100 positions on.
  EXPECT_NEAR(std::max_element(late.begin(), late.end()) - late.begin(), 200, 3);
  double chi2 = 0, total = 0;
  for (int64_t p = 0; p < 300; ++p) {
    const double share = source.mean_share(p, options.rows);
    total += share;
    const double expected = share * static_cast<double>(lookups);
    chi2 += (counts[p] - expected) * (counts[p] - expected) / expected;
  }
  EXPECT_NEAR(total, 1.0, 1e-9);
  EXPECT_LT(chi2, 299 + 5 * 25);
}

TEST(SyntheticReader, keeps_each_columns_law_at_any_popularity) {
  for (double popularity : {0.0, 0.5, 1.0}) {
    const auto model = model_of(with_popularity(popularity, with_every_law()));
    for (const IdSource& source : model->ids()) {
      // Mean 1999, deviation 63; a seed is given, so that this holds or does not.
      EXPECT_NEAR(distance_from_law(source, 400000, 4), 1999, 5 * 63)
          << source.column().name << " at popularity " << popularity << ", seed "
          << model->options().seed;
    }
  }
}

TEST(SyntheticReader, brings_ids_of_one_popularity_together_as_often_as_asked_for) {
  const int64_t rows = 20000;
  for (double popularity : {0.0, 0.3, 1.0}) {
    const auto model = model_of(with_popularity(popularity, with_every_law()));
    const auto& ids = model->ids();
    for (size_t c : {size_t{0}, size_t{4}, size_t{8}}) {  // of each law, two columns of one id
      const IdSource &a = ids[c], &b = ids[c + 2];
      double by_chance = 0;
      for (int64_t p = 0; p < 2000; ++p) by_chance += a.mean_share(p, 1) * b.mean_share(p, 1);
      int64_t together = 0;
      for (int64_t row = 0; row < rows; ++row) together += a.position(row, 0) == b.position(row, 0);
      if (popularity == 1) {
        EXPECT_EQ(together, rows);
      } else {
        const double both = popularity * popularity;
        const double share = both + (1 - both) * by_chance;
        const double deviation = std::sqrt(static_cast<double>(rows) * share * (1 - share));
        EXPECT_NEAR(static_cast<double>(together), static_cast<double>(rows) * share, 4 * deviation)
            << a.column().name << " at popularity " << popularity << ", seed "
            << model->options().seed;
      }
    }
    // The ids of a bag too.
    int64_t bags = 0, alike = 0;
    for (int64_t row = 0; row < rows; ++row) {
      if (ids[1].length(row) < 2) continue;
      ++bags;
      alike += ids[1].position(row, 0) == ids[1].position(row, 1);
    }
    EXPECT_EQ(alike == bags, popularity == 1);
  }
}

TEST(SyntheticReader, makes_rows_of_popular_ids_alone_where_they_come_together) {
  // Of each column the ids that take half the lookups: by chance 2^-10 of the rows have those
  // alone.
  SyntheticOptions options;
  options.shape = SyntheticShape::columns;
  for (int c = 0; c < 10; ++c) {
    options.ids.push_back({.name = "f" + std::to_string(c), .cardinality = 100000});
  }
  options.planted.crosses = 0;
  options.planted.columns = 1;
  std::vector<double> shares;
  for (double popularity : {0.0, 0.9, 1.0}) {
    const auto model = model_of(with_popularity(popularity, options));
    int64_t hot = 0;
    double half = 0;
    while (half < 0.5) half += model->ids()[0].mean_share(hot++, 1);
    int64_t all_hot = 0;
    for (int64_t row = 0; row < 20000; ++row) {
      bool all = true;
      for (const IdSource& source : model->ids()) all = all && source.position(row, 0) < hot;
      all_hot += all;
    }
    shares.push_back(static_cast<double>(all_hot) / 20000);
  }
  // At p: half of (p + (1 - p) / 2)^10 where the row's quantile is hot, of ((1 - p) / 2)^10 else.
  EXPECT_NEAR(shares[0], std::pow(0.5, 10), 0.001);
  EXPECT_NEAR(shares[1], 0.5 * std::pow(0.95, 10), 0.015);
  EXPECT_NEAR(shares[2], 0.5, 0.02);
}

TEST(SyntheticReader, reads_the_same_cells_whichever_columns_decide_on_clicks) {
  SyntheticOptions all = with_lines();
  all.planted.columns = 0;
  const auto few = model_of(with_lines()), whole = model_of(all);
  EXPECT_EQ(few->learnable_ids(0), 0);
  EXPECT_GT(few->learnable_ids(1), 0);
  EXPECT_GT(whole->learnable_ids(0), 0);
  const ColumnBatch a = read(few, 100, 700, 2), b = read(whole, 100, 700, 1);
  EXPECT_NE(a.labels, b.labels);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(a.ids[c].offsets, b.ids[c].offsets);
    EXPECT_EQ(a.ids[c].ids, b.ids[c].ids);
    EXPECT_EQ(a.ids[c].offsets, a.ids[0].offsets);
  }
}

TEST(SyntheticReader, refuses_impossible_options_naming_the_key) {
  const auto message = [](auto&& change, SyntheticOptions options) {
    change(options);
    auto model = PlantedModel::build(options);
    return model.ok() ? std::string("accepted") : model.status().message();
  };
  EXPECT_NE(message([](auto& o) { o.rows = 0; }, small_criteo())
                .find("rows: must be at least 1 and at most 1099511627776, is 0"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.ids[0].mean_length = 21; }, with_bags())
                .find("ids[0].mean_length: must be at most max_length, is 21"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.planted.crosses = 1; }, with_bags()).find("planted.crosses"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.ids[1].deviation = 0; }, with_lines())
                .find("ids[1].deviation: must be at least 0.001 with lengths = \"normal\", is 0"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.ids[2].drift = 3; }, with_lines())
                .find("ids[2].drift: must be 0 but for law = \"zipf\", is 3"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.popularity = 1.5; }, with_bags())
                .find("popularity: must be at least 0 and at most 1, is 1.5"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.id_bits = 40; }, with_bags()).find("id_bits"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.ids[0].top_access_percent = 0.5; }, with_bags())
                .find("ids[0].top_access_percent: column bag: no Zipf"),
            std::string::npos);
  EXPECT_NE(message([](auto& o) { o.dense.push_back({}); }, small_criteo()).find("shape"),
            std::string::npos);
}

}  // namespace recmill::reader
