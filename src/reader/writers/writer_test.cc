// SPDX-License-Identifier: Apache-2.0
#include "reader/writers/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/temporary_folder.h"
#include "base/testing/faulty_files.h"
#include "reader/reader_contract.h"
#include "reader/testing/generated_data.h"

namespace recmill::reader {
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReaderContract);  // its samples_of() alone

namespace {

using ::testing::HasSubstr;

const std::vector<std::string>& columnar_suffixes() {
#ifdef RECMILL_WITH_ARROW
  static const std::vector<std::string> suffixes{".parquet", ".arrow"};
#else
  static const std::vector<std::string> suffixes;
#endif
  return suffixes;
}

std::vector<std::string> suffixes(std::vector<std::string> text) {
  text.insert(text.end(), columnar_suffixes().begin(), columnar_suffixes().end());
  return text;
}

ThreadPool& pool() {
  static ThreadPool pool(2);
  return pool;
}

std::unique_ptr<Reader> open_file(const DataOptions& options) {
  auto reader = open_reader(options, Subset::train, 0, pool(), posix_files());
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return reader.ok() ? *std::move(reader) : nullptr;
}

std::vector<std::string> all_samples(Reader& reader) {
  ColumnBatch batch;
  const Status status = reader.read(0, 0, int64_t{1} << 40, batch);
  EXPECT_TRUE(status.ok()) << status.message();
  return samples_of(reader.schema(), batch);
}

/// From `first`, through a file of each format, to a file of each format: the same rows.
void expect_round_trips(const DataOptions& first, const std::vector<std::string>& formats) {
  TemporaryFolder folder;
  auto origin = open_file(first);
  const DataSchema schema = origin->schema();
  const auto expected = all_samples(*origin);
  WriterOptions options;
  options.row_group_rows = 3000;
  for (const std::string& one : formats) {
    const std::string path = folder.path() + "/one" + one;
    const auto rows = convert(*origin, options, path, posix_files(), nullptr);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_EQ(*rows, static_cast<int64_t>(expected.size()));
    auto between = open_file(options_for(path, schema));
    ASSERT_NE(between, nullptr);
    EXPECT_EQ(between->schema(), schema) << one;
    EXPECT_EQ(all_samples(*between), expected) << one;
    for (const std::string& two : formats) {
      const std::string last = folder.path() + "/two" + two;
      const auto again = convert(*between, options, last, posix_files(), nullptr);
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_EQ(all_samples(*open_file(options_for(last, schema))), expected) << one << two;
    }
  }
}

TEST(Writer, every_kind_of_column_goes_through_every_pair_of_formats) {
  const DataSchema schema = schema_of_all_kinds();
  TemporaryFolder folder;
  const std::string path = folder.path() + "/origin.csv";
  const ColumnBatch batch = generate(schema, 3, 2500);
  ASSERT_TRUE(write_file(path, schema, batch).ok());
  auto origin = open_file(options_for(path, schema));
  ASSERT_EQ(all_samples(*origin), samples_of(schema, batch));
  expect_round_trips(options_for(path, schema), suffixes({".csv", ".csv.gz", ".csv.zst"}));
}

TEST(Writer, criteo_rows_go_through_every_pair_of_formats) {
  const DataSchema schema = criteo_schema();
  TemporaryFolder folder;
  const std::string path = folder.path() + "/origin.tsv";
  const ColumnBatch batch = generate(schema, 5, 1500, /*integers=*/true);
  ASSERT_TRUE(write_file(path, schema, batch).ok());
  ASSERT_EQ(all_samples(*open_file(options_for(path, schema))), samples_of(schema, batch));
  expect_round_trips(options_for(path, schema), suffixes({".tsv", ".tsv.gz", ".tsv.zst", ".csv"}));
}

DataOptions sample(const std::string& path) {
  DataOptions options;
  const char* data = std::getenv("RECMILL_DATA");
  if (data == nullptr) return options;
  options.path = data;
  options.train = {path};
  options.cache = "";
  if (!posix_files().exists(options.path + "/" + path)) options.path.clear();
  return options;
}

TEST(Writer, criteo_kaggle_goes_through_every_pair_of_formats) {
  const DataOptions options = sample("criteo_kaggle/train.tsv");
  if (options.path.empty()) GTEST_SKIP() << "RECMILL_DATA has no criteo_kaggle/train.tsv";
  expect_round_trips(options, suffixes({".tsv", ".tsv.zst", ".csv"}));
}

TEST(Writer, criteo_kaggle_as_tsv_is_the_file_that_it_was) {
  const DataOptions options = sample("criteo_kaggle/train.tsv");
  if (options.path.empty()) GTEST_SKIP() << "RECMILL_DATA has no criteo_kaggle/train.tsv";
  TemporaryFolder folder;
  const std::string path = folder.path() + "/again.tsv";
  ASSERT_TRUE(convert(*open_file(options), {}, path, posix_files(), nullptr).ok());
  const auto was = read_text(posix_files(), options.path + "/criteo_kaggle/train.tsv");
  const auto is = read_text(posix_files(), path);
  ASSERT_TRUE(was.ok() && is.ok());
  EXPECT_TRUE(*was == *is);
}

TEST(Writer, avazu_goes_through_every_pair_of_formats) {
  DataOptions options = sample("avazu/train.csv");
  if (options.path.empty()) GTEST_SKIP() << "RECMILL_DATA has no avazu/train.csv";
  options.format = DataFormat::csv;
  const auto add = [&](const char* name, ColumnRole role, IdText text) {
    ColumnSpec& column = options.columns.emplace_back();
    column.name = name;
    column.role = role;
    column.id_text = text;
  };
  add("click", ColumnRole::label, IdText::text);
  add("hour", ColumnRole::time, IdText::text);
  add("site_id", ColumnRole::id, IdText::hex);
  add("id", ColumnRole::id, IdText::text);
  add("C14", ColumnRole::id, IdText::integer);
  add("C20", ColumnRole::dense, IdText::text);
  expect_round_trips(options, suffixes({".csv", ".csv.gz"}));
}

TEST(Writer, an_empty_data_set_is_a_whole_file) {
  const DataSchema schema = schema_of_all_kinds();
  TemporaryFolder folder;
  for (const std::string& suffix : columnar_suffixes()) {
    const std::string path = folder.path() + "/none" + suffix;
    ASSERT_TRUE(write_file(path, schema, generate(schema, 1, 0)).ok());
    auto reader = open_file(options_for(path, schema));
    ASSERT_NE(reader, nullptr);
    EXPECT_EQ(*reader->rows(), 0);
    EXPECT_EQ(reader->schema(), schema);
    EXPECT_TRUE(all_samples(*reader).empty());
  }
}

TEST(Writer, refuses_by_name_what_a_format_cannot_hold) {
  TemporaryFolder folder;
  const DataSchema all = schema_of_all_kinds();
  const auto refusal = [&](const std::string& name, const DataSchema& schema) {
    auto writer = open_writer({}, folder.path() + "/" + name, schema, posix_files());
    return writer.ok() ? "" : writer.status().message();
  };
  EXPECT_THAT(refusal("a.tsv", all), HasSubstr("a.tsv: criteo_tsv holds a label, 13 dense"));
  EXPECT_THAT(refusal("a.txt", all), HasSubstr("a.txt: the name says no format"));
  EXPECT_THAT(refusal("a.parquet.gz", all), HasSubstr("compress inside"));
  DataSchema twice = all;
  twice.dense[0] = "label";
  EXPECT_THAT(refusal("a.csv", twice), HasSubstr("two columns are named 'label'"));
  DataSchema comma = all;
  comma.dense[0] = "a,b";
  EXPECT_THAT(refusal("a.csv", comma), HasSubstr("cannot hold the column name 'a,b'"));
  EXPECT_TRUE(posix_files().list(folder.path())->empty());
}

TEST(Writer, names_the_row_that_a_format_cannot_hold_and_leaves_nothing) {
  TemporaryFolder folder;
  DataSchema schema = criteo_schema();
  ColumnBatch batch = generate(schema, 7, 10, /*integers=*/true);
  batch.dense[2][4] = 0.5f;
  Status status = write_file(folder.path() + "/a.tsv", schema, batch);
  EXPECT_THAT(status.message(), HasSubstr("a.tsv: column 'I3', row 4: 0.5"));
  schema = schema_of_all_kinds();
  batch = generate(schema, 7, 200);
  schema.bags = {"seen"};  // "items" is none any more
  for (const std::string& suffix : suffixes({".csv"})) {
    status = write_file(folder.path() + "/a" + suffix, schema, batch);
    EXPECT_THAT(status.message(), HasSubstr("column 'items', row "));
    EXPECT_THAT(status.message(), HasSubstr("ids in a column of single ids"));
  }
  EXPECT_TRUE(posix_files().list(folder.path())->empty());
}

TEST(Writer, a_full_disk_is_one_line_with_the_path_and_leaves_nothing) {
  const DataSchema schema = criteo_schema();
  const ColumnBatch batch = generate(schema, 11, 400, /*integers=*/true);
  for (const std::string& suffix : suffixes({".tsv", ".tsv.gz", ".csv.zst"})) {
    const std::string path = "a" + suffix;
    for (const int64_t room : {0, 3, 100, 2000, 20000}) {
      FaultyFiles disk;
      disk.limit_bytes(room);
      WriterOptions options;
      options.row_group_rows = 100;
      const auto write = [&]() -> Status {
        RECMILL_ASSIGN_OR_RETURN(auto writer, open_writer(options, path, schema, disk));
        RECMILL_RETURN_IF_ERROR(writer->write(batch));
        return writer->close();
      };
      const Status status = write();
      EXPECT_FALSE(status.ok()) << suffix << room;
      EXPECT_EQ(status.message(), path + ".tmp: no space left on device");
      EXPECT_TRUE(disk.list("")->empty()) << suffix << room;
    }
  }
}

TEST(Convert, a_stop_says_so_and_leaves_nothing) {
  TemporaryFolder folder, target;
  const DataSchema schema = criteo_schema();
  const std::string path = folder.path() + "/a.tsv";
  ASSERT_TRUE(write_file(path, schema, generate(schema, 1, 100, /*integers=*/true)).ok());
  auto reader = open_file(options_for(path, schema));
  const auto stopped =
      convert(*reader, {}, target.path() + "/b.csv", posix_files(), [](int64_t rows, int64_t of) {
        EXPECT_EQ(rows, 100);
        EXPECT_EQ(of, 100);
        return false;
      });
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.status().message(), HasSubstr("b.csv: stopped after 100 rows"));
  EXPECT_TRUE(posix_files().list(target.path())->empty());
}

}  // namespace
}  // namespace recmill::reader
