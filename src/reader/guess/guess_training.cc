// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/guess_training.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace recmill::reader {
namespace {

/// Lists of so many ids add up, as they do in a linear model (AUC .846 for .826 of means, where a
/// planted law adds them); long ones are averaged, lest their length outweigh what is in them.
constexpr int64_t kFewItems = 8;

constexpr int64_t kMostInDictionary = 2'000'000;  // ids; 128 MiB at 16 values
constexpr int64_t kMostHashed = 20'000'000;
constexpr int64_t kRowsForEachHashedId = 10;
constexpr size_t kMostCutColumns = 64;
constexpr int64_t kManyRows = 2'000'000;
// Of a row's first step, by the batch that its gradient is divided by: found by measurement on ten
// data sets of 7,000 to 120,000 rows. With 0, and with ten times of it, most of them rank worse.
constexpr double kAccumulator = 0.0032;

/// Distinct ids grow as a power of the rows: the power between half of the sample and all of it,
/// carried on to the whole data.
int64_t ids_in_all(const ColumnFacts& f, const TrainingInput& input) {
  if (input.whole) return f.distinct;
  const double half = static_cast<double>(std::max<int64_t>(f.distinct_in_half, 1));
  const double power = std::clamp(std::log2(static_cast<double>(f.distinct) / half), 0.0, 1.0);
  const double growth = static_cast<double>(std::max(input.rows, input.sampled_rows)) /
                        static_cast<double>(std::max<int64_t>(input.sampled_rows, 1));
  return static_cast<int64_t>(static_cast<double>(f.distinct) * std::pow(growth, power));
}

TableGuess table_of(const ColumnFacts& f, const TrainingInput& input) {
  TableGuess table{f.name, f.distinct, 0, false};
  const int64_t ids = ids_in_all(f, input);
  table.hashed = ids > kMostInDictionary;
  if (table.hashed) {
    table.rows = std::min(kMostHashed, kRowsForEachHashedId * ids);
  } else if (input.whole) {
    table.rows = ids + 2;  // unseen ids, and missing ones
  } else {
    table.rows = (ids + ids / 2) / 100 * 100 + 200;
  }
  return table;
}

void choose_dense_ops(const TrainingInput& input, TrainingGuess& guess) {
  double minimum = 0;
  bool log = true;  // nothing below 0 but whole numbers that are marks, as -1 for "none"
  for (const ColumnFacts& f : input.dense) {
    if (!f.number.has_value()) continue;
    minimum = std::min(minimum, f.number->minimum);
    if (f.number->below_zero > 0) log = log && f.whole && f.number->below_zero < 0.2;
  }
  log = log && minimum > -10;
  guess.dense_ops = {"fill_null"};
  if (log) {
    guess.dense_ops.emplace_back("log");
    guess.dense_why = "no values below 0 but marks: logarithms, so that large ones do not rule";
    guess.fill_value = std::floor(minimum) - 1;
  } else {
    guess.dense_ops.emplace_back("standardize");
    guess.dense_why = "each column on one scale; a logarithm would flatten values below 0";
  }
}

void cut_dense_columns(const TrainingInput& input, TrainingGuess& guess) {
  for (const ColumnFacts& f : input.dense) {
    if (guess.features.size() == kMostCutColumns) return;
    if (!f.number.has_value() || f.number->cuts.empty()) continue;
    FeatureGuess feature{f.name + "_bucket", f.name, "", "", f.number->cuts};
    const bool missing = f.cells < f.rows;
    const double first = feature.borders.front();
    if (missing && guess.fill_value < f.number->minimum && f.number->minimum < first) {
      feature.borders.insert(feature.borders.begin(), 0.5 * (guess.fill_value + f.number->minimum));
    }
    guess.features.push_back(std::move(feature));
  }
}

/// Histories and many rows: products of all pairs of rows. Few rows: a linear part, which is all
/// that they suffice for, beside a small deep one.
void choose_model(const TrainingInput& input, TrainingGuess& guess) {
  const bool dense = !input.dense.empty();
  guess.row_rate = 0.03;
  guess.layer_rate = 0.001;
  guess.initial_scale = 0.01;
  if (input.histories) {
    guess.model = "dlrm";
    guess.model_why = "products of a target's row and its history's, and of all others";
    guess.bottom = {64, guess.dim};
    guess.top = {64, 1};
    guess.row_rate = 0.05;
    guess.initial_scale = 0.1;
  } else if (input.rows < kManyRows) {
    guess.model = "wide_and_deep";
    guess.model_why = "a linear part, for which few rows suffice, and a deep one beside it";
    guess.deep = {64, 32};
    guess.deep_input = dense ? "all" : "rows";
    guess.weight_decay = dense ? 0.005 : 0.001;  // measured as kAccumulator was
  } else {
    guess.model = "dlrm";
    guess.model_why =
        "products of all pairs of rows; with fewer rows wide_and_deep would do better";
    if (dense) guess.bottom = {128, 64, guess.dim};
    guess.top = {128, 64, 1};
  }
}

/// The power of two nearest to `value`, within ends that are such powers.
int64_t power_near(double value, int64_t least, int64_t most) {
  if (value <= static_cast<double>(least)) return least;
  const int64_t power = int64_t{1} << std::lround(std::log2(value));
  return std::clamp(power, least, most);
}

void choose_steps(const TrainingInput& input, TrainingGuess& guess) {
  const double rows = 0.9 * static_cast<double>(std::max<int64_t>(input.rows, 1));
  guess.batch_size = power_near(rows / 500, 32, 4096);
  guess.row_accumulator = kAccumulator / static_cast<double>(guess.batch_size);
  guess.epochs = rows < 1e5 ? 5 : rows < 1e6 ? 4 : rows < 1e7 ? 2 : 1;
  guess.steps = std::max<int64_t>(1, static_cast<int64_t>(rows) / guess.batch_size);
  guess.evaluate_every = std::max<int64_t>(1, guess.steps / 4);
  guess.patience = 4;  // an epoch
  guess.metric = "log_loss";
}

}  // namespace

TrainingGuess guess_training(const TrainingInput& input) {
  TrainingGuess guess;
  for (const ColumnFacts& f : input.ids) {
    guess.tables.push_back(table_of(f, input));
    if (f.list || !f.list_separator.empty()) {
      const bool weighted = f.weighted || f.weight_separator != 0;
      const bool adds_up = weighted || f.items <= kFewItems * f.cells;
      guess.features.push_back({f.name, "", "", adds_up ? "sum" : "mean", {}});
    }
  }
  if (!input.dense.empty()) {
    choose_dense_ops(input, guess);
    cut_dense_columns(input, guess);
  }
  choose_model(input, guess);
  guess.by_time = input.has_time;
  choose_steps(input, guess);
  return guess;
}

}  // namespace recmill::reader
