// SPDX-License-Identifier: Apache-2.0
#include "reader/guess_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/temporary_folder.h"
#include "reader/open_reader.h"

namespace recmill::reader {
namespace {

using ::testing::HasSubstr;

ColumnRole role_of(const SchemaGuess& guess, const std::string& name) {
  for (const ColumnSpec& column : guess.options.columns) {
    if (column.name == name) return column.role;
  }
  ADD_FAILURE() << "no column " << name;
  return ColumnRole::ignore;
}

TEST(GuessSchema, finds_roles_types_and_sizes_of_a_csv_file_with_a_header) {
  const TemporaryFolder folder;
  std::string text = "id;click;hour;price;site;code\n";
  for (int i = 0; i < 400; ++i) {
    text += std::to_string(i) + ";" + std::to_string(i % 2) + ";14102100;" + std::to_string(i) +
            ".5;\"shop " + std::to_string(i % 7) + "\";" + std::to_string(i * i) + "\n";
  }
  const std::string path = folder.path() + "/clicks.csv";
  ASSERT_TRUE(write_atomically(posix_files(), path, text).ok());
  const auto guess = guess_schema(posix_files(), folder.path());
  ASSERT_TRUE(guess.ok()) << guess.status().message();
  EXPECT_EQ(guess->options.format, DataFormat::csv);
  EXPECT_EQ(guess->options.delimiter, ";");
  EXPECT_TRUE(guess->options.header);
  EXPECT_EQ(role_of(*guess, "id"), ColumnRole::ignore);
  EXPECT_EQ(role_of(*guess, "click"), ColumnRole::label);
  EXPECT_EQ(role_of(*guess, "hour"), ColumnRole::time);
  EXPECT_EQ(role_of(*guess, "price"), ColumnRole::dense);
  EXPECT_EQ(role_of(*guess, "site"), ColumnRole::id);
  ASSERT_EQ(guess->tables.size(), 2u);
  EXPECT_EQ(guess->tables[0].distinct, 7);
  EXPECT_EQ(guess->tables[0].rows, 100);
  EXPECT_EQ(guess->tables[1].distinct, 400);
  EXPECT_THAT(guess->toml,
              HasSubstr("[[tables]]  # 7 distinct ids in the sample\nname = \"site\""));
  EXPECT_EQ(guess->sampled_rows, 400);
}

TEST(GuessSchema, what_it_guesses_reads_the_samples_of_real_data) {
  const char* const data = std::getenv("RECMILL_DATA");
  const std::string folder = data == nullptr ? "" : data;
  const std::pair<const char*, DataFormat> cases[] = {{"criteo_kaggle", DataFormat::criteo_tsv},
                                                      {"criteo_terabyte", DataFormat::criteo_tsv},
                                                      {"avazu", DataFormat::csv},
                                                      {"taobao", DataFormat::behavior_log}};
  for (const auto& [name, format] : cases) {
    const std::string path = folder + "/" + name;
    if (!posix_files().is_folder(path))
      GTEST_SKIP() << "no real samples: RECMILL_DATA lacks " << name;
    auto guess = guess_schema(posix_files(), path);
    ASSERT_TRUE(guess.ok()) << guess.status().message();
    EXPECT_EQ(guess->options.format, format) << name;
    guess->options.cache = "";
    Pool pool(2);
    auto reader = open_reader(guess->options, Subset::train, 1, pool, posix_files());
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    ColumnBatch batch;
    const Status status = (*reader)->read(0, 0, 5000, batch);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(batch.samples, 5000);
    for (const TableGuess& table : guess->tables) EXPECT_GE(table.rows, table.distinct) << name;
  }
}

TEST(GuessSchema, a_byte_order_mark_is_no_part_of_the_first_name) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/clicks.csv";
  ASSERT_TRUE(write_atomically(posix_files(), path, "\xEF\xBB\xBFsite,click\na,0\nb,1\n").ok());
  auto guess = guess_schema(posix_files(), path);
  ASSERT_TRUE(guess.ok()) << guess.status().message();
  EXPECT_EQ(role_of(*guess, "site"), ColumnRole::id);
  guess->options.cache = "";
  Pool pool(1);
  const auto reader = open_reader(guess->options, Subset::all, 1, pool, posix_files());
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ(*(*reader)->rows(), 2);
}

TEST(GuessSchema, says_why_it_cannot) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& path) {
    return guess_schema(posix_files(), path).status().message();
  };
  EXPECT_THAT(message(folder.path()), HasSubstr("has no files"));
  EXPECT_THAT(message(folder.path() + "/none"), HasSubstr("none: matches no file"));
  ASSERT_TRUE(write_atomically(posix_files(), folder.path() + "/empty.csv", "").ok());
  EXPECT_THAT(message(folder.path()), HasSubstr("empty.csv: is empty"));
  const std::string latin = folder.path() + "/latin.csv";
  ASSERT_TRUE(write_atomically(posix_files(), latin, "click,caf\xE9\n1,a\n0,b\n").ok());
  EXPECT_EQ(message(latin), latin + ": the name of column 2: is no UTF-8 text");
}

}  // namespace
}  // namespace recmill::reader
