// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/planted_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace recmill::reader {
namespace {

SyntheticOptions options_with(int64_t rows, int64_t seed) {
  SyntheticOptions options;
  options.rows = rows;
  options.eval_rows = 30000;
  options.seed = seed;
  return options;
}

PlantedModel built(const SyntheticOptions& options) {
  auto model = PlantedModel::build(options);
  RECMILL_CHECK(model.ok(), model.status().message());
  return *std::move(model);
}

SyntheticRows rows_of(const PlantedModel& model, int64_t first, int64_t count) {
  SyntheticRows rows;
  model.generate(first, count, rows);
  return rows;
}

/// Share of (click, no click) pairs in which the click has the higher score; no ties.
template <typename Score>
double area_under_curve(const SyntheticRows& rows, const Score& score) {
  std::vector<size_t> order(static_cast<size_t>(rows.count));
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score(a) < score(b); });
  double clicks = 0, others = 0, pairs = 0;
  for (size_t i : order) {
    if (rows.labels[i] > 0) {
      clicks += 1;
      pairs += others;
    } else {
      others += 1;
    }
  }
  return pairs / (clicks * others);
}

double variance(const std::vector<LogitParts>& parts, double LogitParts::*part) {
  double sum = 0, squares = 0;
  for (const LogitParts& p : parts) {
    sum += p.*part;
    squares += p.*part * (p.*part);
  }
  const auto n = static_cast<double>(parts.size());
  return squares / n - sum / n * (sum / n);
}

}  // namespace

TEST(PlantedModel, keeps_the_gaps_between_the_best_auc_and_the_simpler_models_for_any_seed) {
  for (int64_t seed : {1, 2, 3, 4, 77}) {
    const PlantedModel model = built(options_with(1900000, seed));
    const SyntheticRows rows = rows_of(model, 1900000, 60000);
    const double best = area_under_curve(rows, [&](size_t i) { return rows.probabilities[i]; });
    const double dense = area_under_curve(rows, [&](size_t i) { return rows.logits[i].dense; });
    const double linear =
        area_under_curve(rows, [&](size_t i) { return rows.logits[i].dense + rows.logits[i].ids; });
    EXPECT_GT(best, 0.77) << "seed " << seed;
    EXPECT_LT(best, 0.82) << "seed " << seed;
    EXPECT_LT(dense, best - 0.06) << "seed " << seed;
    EXPECT_LT(linear, best - 0.013) << "seed " << seed;
    const double clicks = std::accumulate(rows.labels.begin(), rows.labels.end(), 0.0);
    EXPECT_NEAR(clicks / 60000, 0.25, 0.01) << "seed " << seed;
  }
}

TEST(PlantedModel, plants_parts_of_the_variance_that_was_asked_for) {
  for (int64_t rows : {50000, 1900000}) {
    SyntheticOptions options = options_with(rows, 9);
    options.planted.dense_variance = 0.4;
    options.planted.id_variance = 0.8;
    options.planted.cross_variance = 0.2;
    const PlantedModel model = built(options);
    const SyntheticRows sample = rows_of(model, 0, 50000);
    EXPECT_NEAR(variance(sample.logits, &LogitParts::dense), 0.4, 0.03);
    EXPECT_NEAR(variance(sample.logits, &LogitParts::ids), 0.8, 0.05);
    // Missing cells take a part of the crosses away.
    EXPECT_NEAR(variance(sample.logits, &LogitParts::crosses), 0.2, 0.03);
  }
}

TEST(PlantedModel, plants_that_variance_where_popular_ids_come_together_too) {
  for (double popularity : {0.5, 0.9}) {
    SyntheticOptions options = options_with(1900000, 9);
    options.popularity = popularity;
    const PlantedModel model = built(options);
    const SyntheticRows sample = rows_of(model, 0, 50000);
    EXPECT_NEAR(variance(sample.logits, &LogitParts::dense), 1.1, 0.05);
    EXPECT_NEAR(variance(sample.logits, &LogitParts::ids), 0.4, 0.03);
    EXPECT_NEAR(variance(sample.logits, &LogitParts::crosses), 0.5, 0.06);
    const double clicks = std::accumulate(sample.labels.begin(), sample.labels.end(), 0.0);
    EXPECT_NEAR(clicks / 50000, 0.25, 0.01);
  }
}

TEST(PlantedModel, plants_crosses_that_ids_of_no_column_predict_where_popular_ids_come_together) {
  SyntheticOptions options = options_with(1900000, 5);
  options.popularity = 1;
  options.planted.crosses = 1;
  const PlantedModel model = built(options);
  const SyntheticRows rows = rows_of(model, 0, 200000);
  for (size_t c = 0; c < model.ids().size(); ++c) {
    std::map<int64_t, std::pair<double, double>> by_id;  // sum and count
    for (int64_t i = 0; i < rows.count; ++i) {
      if (rows.offsets[c][i] == rows.offsets[c][i + 1]) continue;
      auto& [sum, count] = by_id[rows.positions[c][rows.offsets[c][i]]];
      sum += rows.logits[i].crosses;
      count += 1;
    }
    for (const auto& [position, id] : by_id) {
      EXPECT_LE(std::abs(id.first), 8 * std::sqrt(id.second)) << "column " << c << " " << position;
    }
  }
}

TEST(PlantedModel, gives_an_effect_to_an_id_expected_often_enough_and_to_no_other) {
  SyntheticOptions options = options_with(20000, 3);
  options.drift = 1000;
  const PlantedModel model = built(options);
  for (size_t c = 0; c < model.ids().size(); ++c) {
    const IdSource& source = model.ids()[c];
    const double lookups = source.expected_lookups(options.rows);
    int64_t learnable = 0;
    for (int64_t p = 0; p < source.column().cardinality; ++p) {
      const bool enough = source.mean_share(p, options.rows) * lookups >= 200;
      learnable += enough;
      ASSERT_EQ(model.effect(c, p) != 0.0, enough) << "column " << c << " position " << p;
    }
    EXPECT_EQ(model.learnable_ids(c), learnable);
  }
}

TEST(PlantedModel, plants_crosses_that_no_single_id_predicts) {
  const PlantedModel model = built(options_with(1900000, 5));
  ASSERT_EQ(model.crossed_columns().size(), 3u);
  SyntheticOptions one_cross = options_with(1900000, 5);
  one_cross.planted.crosses = 1;
  const PlantedModel single = built(one_cross);
  const SyntheticRows rows = rows_of(single, 0, 200000);
  const auto pairs = single.crossed_columns();
  for (size_t c : pairs[0]) {
    std::vector<double> sums(1000), counts(1000);
    for (int64_t i = 0; i < rows.count; ++i) {
      if (rows.offsets[c][i] == rows.offsets[c][i + 1]) continue;
      const int64_t position = rows.positions[c][rows.offsets[c][i]];
      sums[position] += rows.logits[i].crosses;
      counts[position] += 1;
    }
    for (size_t p = 0; p < sums.size(); ++p) {
      // Five standard errors; a factor may be a few times larger than its column's typical one.
      EXPECT_LE(std::abs(sums[p]), 8 * std::sqrt(counts[p])) << "column " << c << " id " << p;
    }
  }
}

TEST(PlantedModel, counts_the_newest_id_of_a_sequence_most) {
  SyntheticOptions options;
  options.shape = SyntheticShape::columns;
  options.rows = 10000;
  options.ids.push_back(
      {.name = "s", .cardinality = 20, .mean_length = 4, .max_length = 8, .sequence = true});
  options.planted.crosses = 0;
  const PlantedModel model = built(options);
  const SyntheticRows rows = rows_of(model, 0, 300);
  for (int64_t i = 0; i < rows.count; ++i) {
    double expected = 0, weight = 0.5;  // 1 / sqrt(mean_length)
    for (int64_t k = rows.offsets[0][i + 1]; k-- > rows.offsets[0][i]; weight *= 0.5) {
      expected += weight * model.effect(0, rows.positions[0][k]);
    }
    EXPECT_NEAR(rows.logits[i].ids, expected, 1e-12);
  }
}

namespace {

uint64_t hash_of_rows(double popularity) {
  SyntheticOptions options = options_with(100000, 1);
  options.planted.dense_variance = 1.2;
  options.planted.id_variance = 0.5;
  options.planted.cross_variance = 0.3;
  options.popularity = popularity;
  const PlantedModel model = built(options);
  const SyntheticRows rows = rows_of(model, 12345, 200);
  uint64_t hash = 0;
  const auto add = [&](uint64_t word) { hash = Random::mix(hash ^ word); };
  for (const auto& column : rows.dense) {
    for (float value : column) add(std::isnan(value) ? 1 : std::bit_cast<uint32_t>(value));
  }
  for (size_t c = 0; c < rows.positions.size(); ++c) {
    for (int64_t position : rows.positions[c]) add(model.ids()[c].raw_id(position));
  }
  for (double p : rows.probabilities) add(std::bit_cast<uint64_t>(p));
  return hash;
}

}  // namespace

TEST(PlantedModel, has_these_rows_on_every_machine) {
  EXPECT_EQ(hash_of_rows(0), 602424849083448330u);
  EXPECT_EQ(hash_of_rows(0.5), 15599421136824403046u);
}

}  // namespace recmill::reader
