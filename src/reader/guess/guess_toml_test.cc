// SPDX-License-Identifier: Apache-2.0
// The text that `recmill init` writes, whole: what a newcomer reads first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "reader/guess/guess_schema.h"
#include "reader/row_split.h"

namespace recmill::reader {
namespace {

constexpr const char* kText = R"(# Guessed by `recmill init` from all 200 rows. Look it over.
[data]
format = "csv"
path = "FOLDER"
train = ["rows.csv"]
delimiter = ","
header = true
split.by = "time"  # the last tenth evaluates: what a model is for comes later
split.eval_fraction = 0.1
shuffle.kind = "window"  # neighbouring rows are often alike

[[data.columns]]  # whole numbers from 0 to 1, 2 distinct: the label by its name
name = "clicked"
role = "label"

[[data.columns]]  # whole numbers from 1700000000 to 1700011940, 200 distinct: the time
name = "when"
role = "time"

[[data.columns]]  # numbers from 0 to 25, 101 distinct; AUC alone 0.559
name = "price"
role = "dense"

[[data.columns]]  # 2 distinct; AUC alone 0.504
name = "city"
role = "id"
id_text = "text"

[[data.columns]]  # 10 distinct; AUC alone 0.395
name = "tags"
role = "id"
id_text = "integer"
list_separator = "|"

[preprocess]
dense = ["fill_null", "log"]  # no values below 0 but marks: logarithms, so that large ones do not rule
fill_value = -1.0  # below all values: what is missing has a range of its own

[embedding]
dim = 16
initial_scale = 0.01  # small: a row that was seldom or never seen says little
mapping = "dictionary"  # a row for each id of the training rows: no two share one

[embedding.optimizer]
kind = "rowwise_adagrad"  # a rate for each row: rare ids learn as well
learning_rate = 0.03
initial_accumulator = 0.0001  # a row's first steps are small: few lookups may mislead

[[tables]]  # 2 distinct ids in the sample
name = "city"
rows = 4

[[tables]]  # 10 distinct ids in the sample
name = "tags"
rows = 12

[[features]]
name = "tags"
pooling = "sum"

# Dense columns once more, cut into ranges with a row each: what is no straight line shows.

[[features]]
name = "price_bucket"
column = "price"
borders = [0.875, 1.875, 2.875, 3.875, 4.875, 5.875, 6.875, 7.875, 8.875, 9.875, 10.875, 11.875, 12.875, 13.875, 14.875, 15.875, 16.875, 17.875, 18.875, 19.875, 20.875, 21.875, 22.875, 23.875, 24.875]

[model]
kind = "wide_and_deep"  # a linear part, for which few rows suffice, and a deep one beside it
deep = [64, 32]
deep_input = "all"

[optimizer]
kind = "adam"  # finds its own step for each weight
learning_rate = 0.001
weight_decay = 0.005  # few rows

[train]
batch_size = 32  # some 5 steps an epoch
epochs = 5  # at most: it stops early
evaluate_every = 1
early_stop.patience = 4  # evaluations in a row without gain: an epoch
early_stop.metric = "log_loss"
checkpoint.keep_best = true  # eval and predict take the best evaluation's model
)";

TEST(GuessToml, says_each_choice_and_why) {
  const TemporaryFolder folder;
  std::string rows = "clicked,when,price,city,tags\n";
  for (int i = 0; i < 200; ++i)
    rows += fmt::format("{},{},{},{},{}|{}\n", i * 7 % 5 == 0 ? 1 : 0, 1700000000 + 60 * i,
                        (i * 37 % 101) / 4.0, i * i % 3 == 0 ? "Oslo" : "Rome", i % 9, i * i % 11);
  const std::string path = folder.path() + "/rows.csv";
  ASSERT_TRUE(write_atomically(posix_files(), path, rows).ok());
  const auto guess = guess_schema(posix_files(), path);
  ASSERT_TRUE(guess.ok()) << guess.status().message();
  std::string text = guess->toml;
  const size_t at = text.find(folder.path());
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.replace(at, folder.path().size(), "FOLDER"), kText);
}

TEST(GuessToml, splits_few_rows_so_that_no_side_is_empty) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/few.csv";
  for (int rows = 2; rows < 40; ++rows) {
    std::string text = "click,city\n";
    for (int i = 0; i < rows; ++i) text += fmt::format("{},{}\n", i % 2, "abc"[i % 3]);
    ASSERT_TRUE(write_atomically(posix_files(), path, text).ok());
    const auto guess = guess_schema(posix_files(), path);
    ASSERT_TRUE(guess.ok()) << guess.status().message();
    const std::string key = "split.eval_fraction = ";
    const size_t at = guess->toml.find(key);
    ASSERT_NE(at, std::string::npos) << guess->toml;
    SplitOptions split;
    split.by = SplitKind::fraction;
    split.eval_fraction = std::stod(guess->toml.substr(at + key.size()));
    int drawn = 0;
    for (int row = 0; row < rows; ++row)
      drawn += RowSplit::make(split, Subset::eval)->keeps_number("few.csv", row) ? 1 : 0;
    EXPECT_GT(drawn, 0) << rows;
    EXPECT_LT(drawn, rows);
  }
}

}  // namespace
}  // namespace recmill::reader
