// SPDX-License-Identifier: Apache-2.0
// Rows as who scores them asks for them: without a label, and with where they are from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "reader/open_reader.h"
#include "reader/writers/column_file.h"

namespace recmill::reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RowsToScore : public ::testing::TestWithParam<std::string> {
 protected:
  /// Files of d, i and name, the first without the label y, the second with it.
  void SetUp() override {
    const std::vector<float> d{1, 2}, y{1, NAN};
    const std::vector<uint64_t> i{7, 8};
    const std::vector<std::string> name{"a, b", "c"};
    const NamedColumn columns[] = {{"d", std::span<const float>(d)},
                                   {"i", std::span<const uint64_t>(i)},
                                   {"name", std::span<const std::string>(name)}};
    write("without", {columns[0], columns[1], columns[2]});
    write("with", {columns[0], columns[1], columns[2], {"y", std::span<const float>(y)}});
    options_.format = GetParam() == ".csv"       ? DataFormat::csv
                      : GetParam() == ".parquet" ? DataFormat::parquet
                                                 : DataFormat::arrow_ipc;
    options_.cache = "";
    options_.path = folder_.path();
    options_.train = {"without" + GetParam(), "with" + GetParam()};
    options_.columns.resize(3);
    options_.columns[0].name = "y";
    options_.columns[0].role = ColumnRole::label;
    options_.columns[1].name = "d";
    options_.columns[1].role = ColumnRole::dense;
    options_.columns[2].name = "i";
    options_.columns[2].role = ColumnRole::id;
    options_.columns[2].id_text = IdText::integer;
  }
  void write(const std::string& name, const std::vector<NamedColumn>& columns) {
    const std::string path = folder_.path() + "/" + name + GetParam();
    const Status written = write_columns(posix_files(), path, columns);
    ASSERT_TRUE(written.ok()) << written.message();
  }
  Result<std::unique_ptr<Reader>> open() {
    return open_reader(options_, Subset::train, 0, pool_, posix_files());
  }
  ColumnBatch read_all() {
    const auto reader = open();
    ColumnBatch batch;
    const Status status = reader.ok() ? (*reader)->read(0, 0, 10, batch) : reader.status();
    EXPECT_TRUE(status.ok()) << status.message();
    return batch;
  }

  TemporaryFolder folder_;
  ThreadPool pool_{1};
  DataOptions options_;
};

TEST_P(RowsToScore, may_lack_a_label_where_nobody_needs_it) {
  const auto refused = open();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("'y'"));
  options_.scored.labels = false;
  const ColumnBatch batch = read_all();
  ASSERT_EQ(batch.labels.size(), 4u);
  EXPECT_TRUE(std::isnan(batch.labels[0]) && std::isnan(batch.labels[1]));
  EXPECT_EQ(batch.labels[2], 1.0f);
  EXPECT_TRUE(std::isnan(batch.labels[3]));
  EXPECT_THAT(batch.dense[0], ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(7, 8, 7, 8));
  EXPECT_TRUE(batch.keys.numbers.empty());
}

TEST_P(RowsToScore, may_lack_the_weight_of_each_sample) {
  ColumnSpec weight;
  weight.name = "w";
  weight.role = ColumnRole::sample_weight;
  options_.columns.push_back(weight);
  options_.scored.labels = false;
  const ColumnBatch batch = read_all();
  ASSERT_EQ(batch.ids.size(), 1u);
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(7, 8, 7, 8));
  EXPECT_TRUE(batch.sample_weights.empty());  // each is 1
}

TEST_P(RowsToScore, say_where_they_are_from_and_what_tells_them_apart) {
  options_.scored = {.labels = false, .numbers = true, .key = "name"};
  const auto reader = open();
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ColumnBatch batch;
  for (const int64_t first : {0, 1}) {
    const Status read = (*reader)->read(0, first, 3, batch);
    ASSERT_TRUE(read.ok()) << read.message();
    if (first == 0) {
      EXPECT_THAT(batch.keys.files, ElementsAre(0, 0, 1));
    }
    if (first == 0) {
      EXPECT_THAT(batch.keys.numbers, ElementsAre(0, 1, 0));
    }
    if (first == 0) {
      EXPECT_THAT(batch.keys.cells, ElementsAre("a, b", "c", "a, b"));
    }
    if (first == 1) {
      EXPECT_THAT(batch.keys.files, ElementsAre(0, 1, 1));
    }
    if (first == 1) {
      EXPECT_THAT(batch.keys.cells, ElementsAre("c", "a, b", "c"));
    }
  }
  EXPECT_THAT((*reader)->key_source().files[1], HasSubstr("with" + GetParam()));
  EXPECT_FALSE((*reader)->key_source().integers);
  options_.scored.key = "none";
  EXPECT_THAT(open().status().message(), HasSubstr("--key: "));
}

TEST_P(RowsToScore, have_integers_as_such_where_the_file_has) {
  options_.scored = {.labels = false, .numbers = true, .key = "i"};
  const auto reader = open();
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ColumnBatch batch;
  ASSERT_TRUE((*reader)->read(0, 0, 4, batch).ok());
  EXPECT_THAT(batch.keys.cells, ElementsAre("7", "8", "7", "8"));
  EXPECT_EQ((*reader)->key_source().integers, GetParam() != ".csv");
}

INSTANTIATE_TEST_SUITE_P(Formats, RowsToScore, ::testing::Values(".csv", ".parquet", ".arrow"),
                         [](const auto& of) { return of.param.substr(1); });

TEST(HeaderlessRows, lack_a_label_where_all_rows_of_a_file_are_short_of_one_cell) {
  TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    ASSERT_TRUE(write_atomically(posix_files(), folder.path() + "/" + name, text).ok());
  };
  write("with.csv", "1,2,a\n0,3,b\n");
  write("without.csv", "4,c\n5,d\n");
  write("torn.csv", "1,6\n0,7,f\n");
  ThreadPool pool(1);
  DataOptions options;
  options.format = DataFormat::csv;
  options.cache = "";
  options.path = folder.path();
  options.header = false;
  options.columns.resize(3);
  options.columns[0].name = "y";
  options.columns[0].role = ColumnRole::label;
  options.columns[1].name = "d";
  options.columns[1].role = ColumnRole::dense;
  options.columns[2].name = "i";
  options.columns[2].role = ColumnRole::id;
  options.scored.labels = false;
  options.train = {"without.csv", "with.csv"};
  const auto reader = open_reader(options, Subset::train, 0, pool, posix_files());
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ColumnBatch batch;
  ASSERT_TRUE((*reader)->read(0, 0, 10, batch).ok());
  EXPECT_THAT(batch.dense[0], ElementsAre(4, 5, 2, 3));
  EXPECT_TRUE(std::isnan(batch.labels[0]) && std::isnan(batch.labels[1]));
  EXPECT_EQ(batch.labels[2], 1.0f);
  options.train = {"torn.csv"};
  const auto torn = open_reader(options, Subset::train, 0, pool, posix_files());
  ASSERT_TRUE(torn.ok()) << torn.status().message();
  EXPECT_THAT((*torn)->read(0, 0, 10, batch).message(),
              HasSubstr("torn.csv:1: has 2 columns instead of 3"));
}

}  // namespace
}  // namespace recmill::reader
