// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/hash.h"
#include "base/temporary_folder.h"
#include "reader/open_reader.h"
#include "reader/reader_contract.h"
#include "reader/row/json_row.h"
#include "reader/testing/text_rows.h"

namespace recmill::reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

const std::string& folder() {
  static const TemporaryFolder folder;
  return folder.path();
}

DataOptions options_of(const std::string& name, const std::string& text) {
  DataOptions options;
  options.format = DataFormat::json_lines;
  options.cache = "";
  options.train = {folder() + "/" + name};
  EXPECT_TRUE(write_atomically(posix_files(), options.train[0], text).ok());
  return options;
}

Result<ColumnBatch> read(const DataOptions& options, Subset subset = Subset::train) {
  ThreadPool pool(2);
  RECMILL_ASSIGN_OR_RETURN(auto reader, open_reader(options, subset, 0, pool, posix_files()));
  ColumnBatch batch;
  RECMILL_RETURN_IF_ERROR(reader->read(0, 0, int64_t{1} << 40, batch));
  return batch;
}

std::string failure_of(const std::string& rows, const std::vector<ColumnSpec>& columns) {
  DataOptions options = options_of("failing.jsonl", rows);
  options.columns = columns;
  const auto batch = read(options);
  const std::string message = batch.ok() ? "read" : batch.status().message();
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

using Bags = std::vector<std::vector<uint64_t>>;
Bags bags_of(const IdColumn& ids) {
  Bags bags;
  for (size_t i = 0; i + 1 < ids.offsets.size(); ++i) {
    bags.emplace_back(ids.ids.begin() + ids.offsets[i], ids.ids.begin() + ids.offsets[i + 1]);
  }
  return bags;
}

TEST(JsonLines, has_numbers_strings_nulls_lists_and_objects_of_weights) {
  DataOptions options = options_of(
      "all.jsonl",
      R"({"y": 1, "d": 0.5, "i": 7, "s": "x y", "tags": ["a", null, "-", "b"], "seen": {"5": 0.5, "-1": 2}, "t": 12, "g": "u", "w": 0.25}
{"y": true, "d": null, "i": 7.0, "tags": null, "seen": [{"id": 9, "weight": -1, "more": 1}], "t": "1970-01-02", "g": 4, "w": "1"}
{"other": [[{"y": 3}]], "g": -1, "t": -5, "seen": {}, "tags": [], "s": "\u00e4", "i": "18446744073709551615", "d": "-0", "y": "0", "w": 1e-50}
)");
  options.columns = {column("y", ColumnRole::label),
                     column("d", ColumnRole::dense),
                     column("i", ColumnRole::id, IdText::integer),
                     column("s", ColumnRole::id),
                     column("tags", ColumnRole::id),
                     column("seen", ColumnRole::id, IdText::integer),
                     column("t", ColumnRole::time),
                     column("g", ColumnRole::group),
                     column("w", ColumnRole::sample_weight)};
  options.columns[4].missing = {"-"};
  const auto batch = read(options);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  const auto id = [](const char* text) { return hash_bytes(text); };
  EXPECT_THAT(batch->labels, ElementsAre(1, 1, 0));
  EXPECT_THAT(batch->dense[0], ElementsAre(0.5f, IsNan(), -0.0f));
  EXPECT_TRUE(std::signbit(batch->dense[0][2]));
  EXPECT_EQ(bags_of(batch->ids[0]), (Bags{{7}, {7}, {UINT64_MAX}}));
  EXPECT_EQ(bags_of(batch->ids[1]), (Bags{{id("x y")}, {}, {id("ä")}}));
  EXPECT_EQ(bags_of(batch->ids[2]), (Bags{{id("a"), id("b")}, {}, {}}));
  EXPECT_EQ(bags_of(batch->ids[3]), (Bags{{5, UINT64_MAX}, {9}, {}}));
  EXPECT_THAT(batch->ids[3].weights, ElementsAre(0.5f, 2, -1));
  EXPECT_THAT(batch->times, ElementsAre(12, 86400, -5));
  EXPECT_THAT(batch->groups, ElementsAre(id("u"), 4, UINT64_MAX));
  EXPECT_THAT(batch->sample_weights, ElementsAre(0.25f, 1, 0));
}

TEST(JsonLines, keys_of_objects_are_columns_by_their_path) {
  DataOptions options = options_of("nested.jsonl",
                                   R"({"y": 0, "a": {"b": 1, "c": {"d": 2.5}}, "a.b": 5}
{"a.b": null, "a": {"b": 1, "c": null}, "y": 1}
{"a": {"b": 3, "c": {"d": -1, "b": 9}}, "y": 1}
{"a": 7, "y": 1}
)");
  options.columns = {column("y", ColumnRole::label), column("a.b", ColumnRole::id, IdText::integer),
                     column("a.c.d", ColumnRole::dense), column("a", ColumnRole::ignore)};
  const auto batch = read(options);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(bags_of(batch->ids[0]), (Bags{{5}, {}, {3}, {}})) << "a key of that very name is first";
  EXPECT_THAT(batch->dense[0], ElementsAre(2.5f, IsNan(), -1, IsNan()));
}

TEST(JsonLines, errors_name_file_line_and_column) {
  const ColumnSpec y = column("y", ColumnRole::label), d = column("d", ColumnRole::dense);
  const ColumnSpec i = column("i", ColumnRole::id, IdText::integer);
  const std::string at = folder() + "/failing.jsonl:2: ";
  const std::string good = "{\"y\": 1, \"d\": 1, \"i\": 1}\n";
  EXPECT_THAT(failure_of(good + "{\"y\": 1, \n", {y}),
              HasSubstr(at + "is not a JSON object: at byte"));
  EXPECT_THAT(failure_of(good + "[1]\n", {y}), HasSubstr(at + "is not a JSON object"));
  EXPECT_THAT(failure_of(good + "7\n", {y}), HasSubstr(at + "is not a JSON object"));
  EXPECT_THAT(failure_of(good + "{\"y\": 1} x\n", {y}), HasSubstr(at + "is not a JSON object"));
  EXPECT_THAT(failure_of(good + "{\"y\": 1, \"x\": \"\xFF\"}\n", {y}),
              HasSubstr(at + "is not a JSON object"));
  EXPECT_EQ(failure_of(good + "{\"y\": 1, \"y\": 0}\n", {y}), at + "has 'y' twice");
  EXPECT_EQ(failure_of(good + "{\"d\": 1}\n", {y}), at + "column y: no value");
  EXPECT_EQ(failure_of(good + "{\"y\": 1, \"d\": [1]}\n", {y, d}),
            at + "column d: is a list or an object; role dense takes one value");
  EXPECT_EQ(failure_of(good + "{\"y\": 1, \"i\": 7.5}\n", {y, i}),
            at + "column i: '7.5' is not an integer id");
  EXPECT_THAT(failure_of(good + "{\"y\": 1, \"i\": [[1]]}\n", {y, i}),
              HasSubstr(at + "column i: is neither an id, nor a list of ids"));
  EXPECT_THAT(failure_of(good + "{\"y\": 1, \"i\": [{\"name\": 1}]}\n", {y, i}),
              HasSubstr(at + "column i: is neither an id, nor a list of ids"));
  std::string many;
  while (many.size() < 300'000) many += good;
  EXPECT_THAT(failure_of(many + "{\"y\": 1, \"i\": [1]}\n", {y, i}),
              HasSubstr("column i: is a list, of which the first rows had none"));
  ColumnSpec bag = i;
  bag.list_separator = "|";
  EXPECT_EQ(failure_of(good + "{\"y\": 1, \"i\": [1]}\n{\"y\": 1, \"i\": \"1|2\"}\n", {y, bag}),
            "read");
  EXPECT_EQ(failure_of(good, {d}), "data.columns: no column has the role label");
  EXPECT_EQ(failure_of("", {y}), folder() + "/failing.jsonl: is empty");
}

TEST(JsonLines, may_lack_the_label_where_rows_are_scored) {
  DataOptions options = options_of("unlabelled.jsonl", "{\"d\": 1}\n{\"d\": 2, \"y\": null}\n");
  options.columns = {column("y", ColumnRole::label), column("d", ColumnRole::dense)};
  EXPECT_EQ(read(options).status().message(), folder() + "/unlabelled.jsonl:1: column y: no value");
  options.scored.labels = false;
  const auto batch = read(options);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_THAT(batch->labels, ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(batch->dense[0], ElementsAre(1, 2));
}

/// Rows of nested users and lists, in two files, one of them compressed by its writer.
DataOptions many_rows() {
  std::string rows[2];
  for (int row = 0; row < 500; ++row) {
    rows[row / 300] += "{\"y\": " + std::to_string(row % 2) + ", \"at\": {\"user\": \"u" +
                       std::to_string(row % 50) + "\", \"t\": " + std::to_string(row * 37 % 500) +
                       "}, \"items\": [" + std::to_string(row) + (row % 3 == 0 ? ", 5" : "") +
                       "]}\n";
  }
  DataOptions options = options_of("second.ndjson", rows[1]);
  options.train.insert(options.train.begin(), options_of("first.jsonl", rows[0]).train[0]);
  options.columns = {column("y", ColumnRole::label), column("at.user", ColumnRole::group),
                     column("at.t", ColumnRole::time), column("items", ColumnRole::id)};
  return options;
}

DataOptions with_split(SplitKind by, const std::string& column) {
  DataOptions options = many_rows();
  options.cache = folder() + "/cache";
  options.split.by = by;
  options.split.eval_fraction = 0.4;
  options.split.column = column;
  return options;
}

INSTANTIATE_TEST_SUITE_P(JsonLines, ReaderContract,
                         ::testing::Values(ReaderCase{"whole", many_rows()},
                                           ReaderCase{"hash",
                                                      with_split(SplitKind::hash, "at.user")},
                                           ReaderCase{"time_eval", with_split(SplitKind::time, ""),
                                                      Subset::eval, false}),
                         ReaderCase::name_of);

TEST(JsonLines, a_split_by_hash_keeps_equal_values_together_of_any_key) {
  DataOptions options = with_split(SplitKind::hash, "at.user");
  options.columns[1].role = ColumnRole::ignore;
  std::set<uint64_t> users[2];
  int64_t rows = 0;
  for (const Subset subset : {Subset::train, Subset::eval}) {
    const auto batch = read(options, subset);
    ASSERT_TRUE(batch.ok()) << batch.status().message();
    rows += batch->samples;
    for (const auto& bag : bags_of(batch->ids[0])) {
      users[subset == Subset::eval].insert(bag[0] % 50);
    }
  }
  EXPECT_EQ(rows, 500);
  options.split.column = "at.nobody";
  EXPECT_EQ(read(options).status().message(),
            "data.split.column: no first row of a file has the key 'at.nobody'");
  EXPECT_EQ(users[0].size() + users[1].size(), 50u);
  EXPECT_GT(users[1].size(), 5u);
}

TEST(JsonLines, rows_to_score_may_lack_the_weight_of_each_sample) {
  TemporaryFolder folder;
  ASSERT_TRUE(
      write_atomically(posix_files(), folder.path() + "/rows.jsonl", "{\"d\": 1}\n{\"d\": 2}\n")
          .ok());
  DataOptions options;
  options.format = DataFormat::json_lines;
  options.cache = "";
  options.path = folder.path();
  options.train = {"rows.jsonl"};
  for (const auto& [name, role] :
       {std::pair("y", ColumnRole::label), std::pair("d", ColumnRole::dense),
        std::pair("w", ColumnRole::sample_weight)}) {
    ColumnSpec spec;
    spec.name = name;
    spec.role = role;
    options.columns.push_back(spec);
  }
  options.scored.labels = false;
  ThreadPool pool(1);
  const auto reader = open_reader(options, Subset::all, 1, pool, posix_files());
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ColumnBatch batch;
  const Status status = (*reader)->read(0, 0, 2, batch);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(batch.dense[0], ::testing::ElementsAre(1.0f, 2.0f));
  EXPECT_TRUE(batch.sample_weights.empty());
}

}  // namespace
}  // namespace recmill::reader
