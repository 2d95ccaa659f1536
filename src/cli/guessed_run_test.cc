// SPDX-License-Identifier: Apache-2.0
// From a raw file to a model with nothing but what `recmill init` writes: it ranks as well as
// logistic regression on the same rows, whose L2 is chosen by hindsight.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/json/json.h"
#include "base/random.h"
#include "cli/testing/logistic_regression.h"
#include "cli/testing/program.h"
#include "reader/guess/guess_schema.h"
#include "reader/open_reader.h"

namespace recmill::cli {
namespace {

constexpr double kSlack = 0.005;

class GuessedRun : public Program {
 protected:
  /// All rows of a subset of what `init` guessed.
  static ColumnBatch rows_of(reader::SchemaGuess guess, Subset subset) {
    guess.options.cache = "";
    guess.options.shuffle.kind = ShuffleKind::none;
    guess.options.split.by = guess.training.by_time ? SplitKind::time : SplitKind::fraction;
    guess.options.split.eval_fraction = 0.1;
    ThreadPool pool(2);
    auto reader = reader::open_reader(guess.options, subset, 1, pool, posix_files());
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    ColumnBatch batch;
    const Status status = (*reader)->read(0, 0, *(*reader)->rows(), batch);
    EXPECT_TRUE(status.ok()) << status.message();
    return batch;
  }

  /// Guesses, trains and compares.
  void expect_as_good_as_regression(const std::string& data,
                                    const std::vector<double>& strengths = {100, 30, 10, 3, 1}) {
    const Outcome made = run({"init", data, "--out", "a.toml", "--overwrite"});
    ASSERT_EQ(made.status, 0) << made.err;
    const Outcome trained =
        run({"train", "a.toml", "--quiet", "--overwrite", "--set", "train.threads=2"});
    ASSERT_EQ(trained.status, 0) << trained.err;
    const Json summary = run_json({"eval", "runs/a", "--quiet"});  // of the best evaluation
    const auto guess =
        reader::guess_schema(posix_files(), data.starts_with('/') ? data : path(data));
    ASSERT_TRUE(guess.ok()) << guess.status().message();
    EXPECT_NE(guess->toml.find("split.eval_fraction = 0.1\n"), std::string::npos);
    const ColumnBatch train = rows_of(*guess, Subset::train), eval = rows_of(*guess, Subset::eval);
    const double regression = regression_auc(train, eval, strengths);
    const double auc = summary.value("auc", 0.0);
    RecordProperty("auc", fmt::format("{:.4f}", auc));
    RecordProperty("regression", fmt::format("{:.4f}", regression));
    EXPECT_GE(auc, regression - kSlack) << data << " of " << eval.samples << " rows";
  }

  /// A real sample's file or folder; empty where it is not there.
  static std::string real(const std::string& name) {
    const char* const data = std::getenv("RECMILL_DATA");
    const std::string path = data == nullptr ? "" : std::string(data) + "/" + name;
    return posix_files().exists(path) ? path : "";
  }
};

/// Numbers of one purpose, the same every time.
class Draws {
 public:
  explicit Draws(uint64_t purpose) : random_(5, Purpose::test, purpose) {}
  double uniform(int64_t item) const { return random_.uniform64(static_cast<uint64_t>(item)); }
  double normal(int64_t item) const { return random_.normal(static_cast<uint64_t>(item)); }
  int64_t below(int64_t most, int64_t item) const {
    return static_cast<int64_t>(uniform(item) * static_cast<double>(most));
  }

 private:
  Random random_;
};

/// userId,movieId,liked,timestamp: users and movies of all sorts, popularity that falls off.
std::string ratings(int64_t rows) {
  const Draws user_of(1), movie_of(2), noise(3), users(4), movies(5), tastes(6), kinds(7);
  std::string text = "userId,movieId,liked,timestamp\n";
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t user = user_of.below(400, i);
    const int64_t rank = static_cast<int64_t>(600 * std::pow(movie_of.uniform(i), 2.5));
    const int64_t movie = 7 * (rank * 211 % 600) + 3;
    double score = 0.5 * users.normal(user) + 0.6 * movies.normal(movie) + noise.normal(i);
    for (int64_t k = 0; k < 3; ++k) {
      score += 0.4 * tastes.normal(3 * user + k) * kinds.normal(3 * movie + k);
    }
    text += fmt::format("{},{},{},{}\n", user + 1, movie, score > 0 ? 1 : 0, 978300000 + 321 * i);
  }
  return text;
}

/// Ages, incomes and words, with effects that are no straight lines.
std::string census(int64_t rows) {
  const char* const marital[] = {"Married", "Never-married", "Divorced", "Widowed"};
  const Draws age_a(11), age_b(12), education(13), status(14), job(15), hour(16), gain(17),
      size(18), click(19), jobs(20), weight(21);
  std::string text =
      ",age,fnlwgt,education-num,marital-status,occupation,hours-per-week,capital-gain,income\n";
  for (int64_t i = 0; i < rows; ++i) {
    const auto age = static_cast<int64_t>(17 + 35 * age_a.uniform(i) + 30 * age_b.uniform(i));
    const auto years = std::clamp<int64_t>(std::lround(10 + 2.6 * education.normal(i)), 1, 16);
    const int64_t married = status.below(4, i), occupation = job.below(14, i);
    const int64_t hours = std::clamp<int64_t>(std::lround(40 + 11 * hour.normal(i)), 1, 99);
    const bool gained = gain.uniform(i) < 0.08;
    const auto amount = static_cast<int64_t>(gained ? std::exp(8.5 + size.normal(i)) : 0);
    const double z = -4.6 + 0.3 * static_cast<double>(years) + 0.6 * jobs.normal(occupation) +
                     (married == 0 ? 1.9 : 0) + 0.03 * static_cast<double>(hours - 40) -
                     0.0022 * static_cast<double>((age - 48) * (age - 48)) +
                     (amount > 6000 ? 3.0 : 0.0);
    const bool above = click.uniform(i) < 1 / (1 + std::exp(-z));
    text += fmt::format("{},{},{},{},{},job {},{},{},{}\n", i, age,
                        static_cast<int64_t>(std::exp(12 + 0.5 * weight.normal(i))), years,
                        marital[married], occupation, hours, amount, above ? 1 : 0);
  }
  return text;
}

TEST_F(GuessedRun, ranks_criteo_rows_as_well_as_regression) {
  const std::string data = real("criteo_kaggle/train.tsv");
  if (data.empty()) GTEST_SKIP() << "no real samples: RECMILL_DATA has no criteo_kaggle";
  expect_as_good_as_regression(data);
}

TEST_F(GuessedRun, ranks_avazu_rows_as_well_as_regression) {
  const std::string data = real("avazu/train.csv");
  if (data.empty()) GTEST_SKIP() << "no real samples: RECMILL_DATA has no avazu";
  expect_as_good_as_regression(data);
}

TEST_F(GuessedRun, ranks_taobao_sequences_as_well_as_regression) {
  const std::string data = real("taobao/user_behavior.csv");
  if (data.empty()) GTEST_SKIP() << "no real samples: RECMILL_DATA has no taobao";
  expect_as_good_as_regression(data, {10});  // of 120,000 rows: one strength
}

TEST_F(GuessedRun, ranks_ratings_as_well_as_regression) {
  write("ratings.csv", ratings(16000));
  expect_as_good_as_regression("ratings.csv");
}

TEST_F(GuessedRun, ranks_a_census_as_well_as_regression) {
  write("census.csv", census(12000));
  expect_as_good_as_regression("census.csv");
}

TEST_F(GuessedRun, ranks_criteo_rows_of_parquet_as_well_as_regression) {
  ASSERT_EQ(
      run({"synth", "--out", "data", "--rows", "12000", "--eval-rows", "10", "--quiet"}).status, 0);
  write("tsv.toml", "[data]\npath = 'data'\ntrain = 'train.tsv'\n");
  ASSERT_EQ(run({"convert", "tsv.toml", "--out", "rows.parquet", "--quiet"}).status, 0);
  expect_as_good_as_regression("rows.parquet");
}

}  // namespace
}  // namespace recmill::cli
