// SPDX-License-Identifier: Apache-2.0
// Columns of the types that others write, in each columnar format that has them.
#include <arrow/json/from_string.h>
#include <arrow/util/decimal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "base/hash.h"
#include "reader/columnar/columnar_reader.h"
#include "reader/columnar/key_column.h"
#include "reader/guess/guess_schema.h"
#include "reader/testing/foreign_file.h"

namespace recmill::reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

std::shared_ptr<arrow::Array> array_of(const std::shared_ptr<arrow::DataType>& type,
                                       const std::string& json) {
  auto array = arrow::json::ArrayFromJSONString(type, json);
  EXPECT_TRUE(array.ok()) << array.status().ToString() << " " << json;
  return *std::move(array);
}

std::shared_ptr<arrow::Array> coded(const std::shared_ptr<arrow::DataType>& values,
                                    const std::string& codes, const std::string& dictionary) {
  return *arrow::DictionaryArray::FromArrays(arrow::dictionary(arrow::int8(), values),
                                             array_of(arrow::int8(), codes),
                                             array_of(values, dictionary));
}

/// A file with a label in each of `rows` rows, and one column more.
Foreign file_with(int64_t rows, ColumnRole role, std::shared_ptr<arrow::Array> array,
                  IdText text = IdText::text) {
  Foreign file;
  file.label(rows);
  file.add_array("x", role, std::move(array), text);
  return file;
}

class ColumnarTypes : public ::testing::TestWithParam<std::string> {
 protected:
  ColumnBatch read(Foreign file) const {
    auto batch = read_all(file.write(GetParam()));
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    return batch.ok() ? *std::move(batch) : ColumnBatch();
  }
  Bags ids(std::shared_ptr<arrow::Array> array, IdText text = IdText::text) const {
    const int64_t rows = array->length();
    ColumnBatch batch = read(file_with(rows, ColumnRole::id, std::move(array), text));
    return batch.ids.empty() ? Bags() : bags_of(batch.ids[0]);
  }
  bool has(arrow::Type::type type) const {
    const bool orc = GetParam() == ".orc";
    return !orc || (type != arrow::Type::DECIMAL256 && type != arrow::Type::HALF_FLOAT);
  }
  std::string failure(ColumnRole role, std::shared_ptr<arrow::Array> array) const {
    const int64_t rows = array->length();
    Foreign file = file_with(rows, role, std::move(array));
    return failure_of(file.write(GetParam()));
  }
};

TEST_P(ColumnarTypes, decimals_are_numbers_rounded_once_and_whole_ones_ids) {
  for (const auto& type : {arrow::decimal128(38, 20), arrow::decimal256(70, 20)}) {
    if (!has(type->id())) continue;
    // Halfway between two floats but for the last digit: a float64 between would round it down.
    const auto numbers = array_of(type, R"(["16777217.00000000000000000001", null,
        "-0.10000000000000000000", "16777217.00000000000000000000"])");
    const ColumnBatch batch = read(file_with(4, ColumnRole::dense, numbers));
    ASSERT_EQ(batch.dense.size(), 1u);
    EXPECT_THAT(batch.dense[0], ElementsAre(16777218.0f, IsNan(), -0.1f, 16777216.0f));
  }
  EXPECT_EQ(ids(array_of(arrow::decimal128(20, 2), R"(["7.00", null, "-1.00", "0.00"])")),
            (Bags{{7}, {}, {UINT64_MAX}, {0}}));
  EXPECT_EQ(ids(array_of(arrow::decimal128(30, 0), R"(["18446744073709551615"])")),
            (Bags{{UINT64_MAX}}));
  EXPECT_THAT(failure(ColumnRole::id, array_of(arrow::decimal128(9, 2), R"(["1.00", "7.50"])")),
              HasSubstr(": column 'x', row 1: '7.50' is not an integer id"));
  EXPECT_THAT(
      failure(ColumnRole::id, array_of(arrow::decimal128(30, 0), R"(["18446744073709551616"])")),
      HasSubstr(": column 'x', row 0: '18446744073709551616' is not"));
}

TEST_P(ColumnarTypes, whole_floats_are_the_ids_of_their_integers) {
  for (const auto& type : {arrow::float32(), arrow::float64()}) {
    EXPECT_EQ(ids(array_of(type, "[7, null, -1, -0.0, NaN, 9223372036854775808]")),
              (Bags{{7}, {}, {UINT64_MAX}, {0}, {}, {uint64_t{1} << 63}}));
    EXPECT_EQ(ids(array_of(arrow::list(type), "[[3, null, 4], [], null]")), (Bags{{3, 4}, {}, {}}));
    const ColumnBatch batch = read(file_with(2, ColumnRole::group, array_of(type, "[5, -1]")));
    EXPECT_THAT(batch.groups, ElementsAre(5, UINT64_MAX));
    EXPECT_THAT(read(file_with(2, ColumnRole::time, array_of(type, "[5, -1]"))).times,
                ElementsAre(5, -1));
    const std::string at = ": column 'x', row 1: ";
    EXPECT_THAT(failure(ColumnRole::id, array_of(type, "[1, 7.5]")),
                HasSubstr(at + "'7.5' is not an integer id"));
    EXPECT_THAT(failure(ColumnRole::id, array_of(arrow::list(type), "[[1], [2, 0.25]]")),
                HasSubstr(at + "'0.25' is not an integer id"));
    EXPECT_THAT(failure(ColumnRole::id, array_of(type, "[1, 18446744073709551616]")),
                HasSubstr(at + "'1"));
    EXPECT_THAT(failure(ColumnRole::group, array_of(type, "[1, null]")),
                HasSubstr(at + "no value"));
    EXPECT_THAT(failure(ColumnRole::time, array_of(type, "[1, 1e30]")), HasSubstr("is not a time"));
  }
}

TEST_P(ColumnarTypes, whole_times_beyond_64_bits_are_errors) {
  if (GetParam() == ".orc") return;  // has no unsigned integers
  EXPECT_THAT(failure(ColumnRole::time, array_of(arrow::uint64(), "[5, 9223372036854775808]")),
              HasSubstr("column 'x', row 1: '9223372036854775808' is not a time"));
  EXPECT_THAT(read(file_with(2, ColumnRole::time, array_of(arrow::uint64(), "[5, 7]"))).times,
              ElementsAre(5, 7));
}

TEST_P(ColumnarTypes, fields_of_structs_are_columns_and_null_where_a_struct_is) {
  const auto inner = arrow::struct_({arrow::field("shop", arrow::int64()),
                                     arrow::field("tags", arrow::list(arrow::int64())),
                                     arrow::field("tags.weights", arrow::list(arrow::float32())),
                                     arrow::field("price", arrow::float64())});
  const auto outer =
      arrow::struct_({arrow::field("user", arrow::utf8()), arrow::field("at", inner)});
  Foreign file;
  file.label(4);
  file.add_array("event", ColumnRole::ignore, array_of(outer, R"([
      {"user": "a", "at": {"shop": 1, "tags": [1, 2], "tags.weights": [0.5, 2], "price": 2.5}},
      {"user": "b", "at": null},
      null,
      {"user": null, "at": {"shop": 4, "tags": [], "tags.weights": [], "price": null}}])"));
  file.add_array("event.user", ColumnRole::ignore, array_of(arrow::utf8(), R"(["w","x","y","z"])"));
  for (const auto& [name, role] :
       {std::pair{"event.at.shop", ColumnRole::id}, std::pair{"event.at.tags", ColumnRole::id},
        std::pair{"event.user", ColumnRole::id}, std::pair{"event.at.price", ColumnRole::dense}}) {
    file.options.columns.emplace_back();
    file.options.columns.back().name = name;
    file.options.columns.back().role = role;
  }
  DataOptions options = file.write(GetParam());
  const auto rows = read_rows(options);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_THAT(rows->schema.ids, ElementsAre("event.at.shop", "event.at.tags", "event.user"));
  EXPECT_THAT(rows->schema.weighted, ElementsAre("event.at.tags"));
  EXPECT_EQ(bags_of(rows->batch.ids[0]), (Bags{{1}, {}, {}, {4}}));
  EXPECT_EQ(bags_of(rows->batch.ids[1]), (Bags{{1, 2}, {}, {}, {}}));
  EXPECT_EQ(rows->batch.ids[1].weights, (std::vector<float>{0.5, 2}));
  const auto id = [](const char* text) { return std::vector<uint64_t>{hash_bytes(text)}; };
  EXPECT_EQ(bags_of(rows->batch.ids[2]), (Bags{id("w"), id("x"), id("y"), id("z")}))
      << "a column of that very name comes first";
  EXPECT_THAT(rows->batch.dense[0], ElementsAre(2.5f, IsNan(), IsNan(), IsNan()));
  const auto guess = guess_schema(posix_files(), options.train[0], "click");
  ASSERT_TRUE(guess.ok()) << guess.status().message();
  std::vector<std::string> names;
  for (const ColumnGuess& column : guess->columns) names.push_back(column.spec.name);
  EXPECT_THAT(names, ElementsAre("click", "event.at.shop", "event.at.tags", "event.at.tags.weights",
                                 "event.at.price", "event.user"));
  options.columns[1].name = "event.at.nothing";
  EXPECT_THAT(failure_of(options), HasSubstr("column 'event.at.nothing' is missing"));
  options.columns[1].name = "event.at";
  EXPECT_THAT(failure_of(options), HasSubstr("column 'event.at' is struct<"));
}

TEST_P(ColumnarTypes, maps_and_lists_of_structs_are_bags_with_weights) {
  const auto map = arrow::map(arrow::int32(), arrow::float64());
  const auto structs = arrow::list(arrow::struct_(
      {arrow::field("weight", arrow::float32()), arrow::field("id", arrow::utf8())}));
  Foreign file;
  file.label(4);
  file.add_array("seen", ColumnRole::id,
                 array_of(map, "[[[5, 0.5], [-1, 2]], null, [], [[9, -1]]]"));
  file.add_array("words", ColumnRole::id, array_of(structs, R"([
      [{"id": "a", "weight": 1.5}, null, {"id": null, "weight": null}, {"id": "b", "weight": 3}],
      [], null, [{"id": "-", "weight": null}]])"));
  file.options.columns[2].missing = {"-"};
  const auto rows = read_rows(file.write(GetParam()));
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_THAT(rows->schema.bags, ElementsAre("seen", "words"));
  EXPECT_THAT(rows->schema.weighted, ElementsAre("seen", "words"));
  EXPECT_EQ(bags_of(rows->batch.ids[0]), (Bags{{5, UINT64_MAX}, {}, {}, {9}}));
  EXPECT_EQ(rows->batch.ids[0].weights, (std::vector<float>{0.5, 2, -1}));
  EXPECT_EQ(bags_of(rows->batch.ids[1]), (Bags{{hash_bytes("a"), hash_bytes("b")}, {}, {}, {}}));
  EXPECT_EQ(rows->batch.ids[1].weights, (std::vector<float>{1.5, 3}));
  EXPECT_THAT(failure(ColumnRole::id, array_of(map, "[[[5, 0.5]], [[6, null]]]")),
              HasSubstr("column 'x', row 1: a weight is not a finite number"));
}

TEST_P(ColumnarTypes, items_that_are_listed_as_missing_or_null_are_left_out_with_their_weights) {
  Foreign file;
  file.label(3);
  file.add_array("seen", ColumnRole::id,
                 array_of(arrow::list(arrow::int64()), "[[1, 0, 2], [0], [null, 3]]"));
  file.add_array("seen.weights", ColumnRole::ignore,
                 array_of(arrow::list(arrow::float32()), "[[0.5, 9, 2], [null], [8, 4]]"));
  file.options.columns[1].missing = {"0"};
  const ColumnBatch batch = read(file);
  EXPECT_EQ(bags_of(batch.ids[0]), (Bags{{1, 2}, {}, {3}}));
  EXPECT_EQ(batch.ids[0].weights, (std::vector<float>{0.5, 2, 4}));
}

TEST_P(ColumnarTypes, missing_numbers_go_by_value_in_every_type) {
  for (const auto& [type, value] :
       {std::pair{arrow::float64(), "[-999.5, null, 2]"},
        std::pair{arrow::float32(), "[-999.5, null, 2]"},
        std::pair{arrow::float16(), "[-999.5, null, 2]"},
        std::pair{arrow::decimal128(9, 3), R"(["-999.500", null, "2.000"])"},
        std::pair{arrow::float32(), "[0.1, null, 2]"},
        std::pair{arrow::float64(), "[0.1, null, 2]"}, std::pair{arrow::int16(), "[-1, null, 2]"},
        std::pair{arrow::float16(), "[-1, null, 2]"}}) {
    if (!has(type->id())) continue;
    Foreign file = file_with(3, ColumnRole::dense, array_of(type, value));
    file.options.columns[1].missing = {"NA", "-999.5", "-1", "0.1"};
    EXPECT_THAT(read(file).dense[0], ElementsAre(IsNan(), IsNan(), 2.0f))
        << type->ToString() << " " << value;
  }
  Foreign file = file_with(2, ColumnRole::id, array_of(arrow::float64(), "[-1, 2]"));
  file.options.columns[1].missing = {"-1"};
  EXPECT_EQ(bags_of(read(file).ids[0]), (Bags{{}, {2}}));
}

INSTANTIATE_TEST_SUITE_P(Formats, ColumnarTypes,
                         ::testing::Values(".parquet", ".arrow", ".arrows", ".orc"),
                         [](const auto& info) { return info.param.substr(1); });

TEST(RowGroups, of_streams_and_orc_files_are_read_from_any_row) {
  Foreign file;
  const int64_t rows = 1000;
  std::vector<std::optional<int64_t>> ids;
  for (int64_t row = 0; row < rows; ++row) ids.emplace_back(row * 7 % 101);
  file.label(rows);
  file.add<arrow::Int64Builder, int64_t>("x", ColumnRole::id, arrow::Int64Builder(), ids);
  file.rows_at_once = 70;
  const auto all = read_rows(file.write(".arrow"));
  ASSERT_TRUE(all.ok()) << all.status().message();
  const auto expected = all->samples();
  for (const char* suffix : {".arrows", ".orc"}) {
    DataOptions options = file.write(suffix);
    EXPECT_GT(
        (*open_row_groups(options.format, options.train[0], posix_files()))->row_groups().size(),
        5u);
    options.shuffle.window = 33;
    ThreadPool pool(2);
    auto reader = open_reader(options, Subset::train, 0, pool, posix_files());
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    for (const int64_t first : {900, 69, 500, 0}) {
      ColumnBatch batch;
      ASSERT_TRUE((*reader)->read(0, first, 100, batch).ok());
      EXPECT_TRUE(std::ranges::equal(samples_of((*reader)->schema(), batch),
                                     std::span(expected).subspan(static_cast<size_t>(first), 100)))
          << suffix << " " << first;
    }
  }
}

TEST(ArrowStream, dictionaries_that_replace_or_add_to_those_before_hold_from_there_on) {
  for (const bool deltas : {false, true}) {
    const auto type = arrow::dictionary(arrow::int8(), arrow::utf8());
    const std::string path = folder() + (deltas ? "/deltas.arrows" : "/replaced.arrows");
    Status failure;
    auto output = arrow_output(*posix_files().create(path), failure);
    const auto schema =
        arrow::schema({arrow::field("click", arrow::int8()), arrow::field("x", type)});
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    options.emit_dictionary_deltas = deltas;
    auto writer = *arrow::ipc::MakeStreamWriter(output, schema, options);
    for (const char* words : {R"(["a"])", R"(["a", "b"])", R"(["c", "d"])"}) {
      const auto batch = arrow::RecordBatch::Make(
          schema, 2,
          {array_of(arrow::int8(), "[1, 0]"),
           coded(arrow::utf8(), words == std::string(R"(["a"])") ? "[0, 0]" : "[0, 1]", words)});
      ASSERT_TRUE(writer->WriteRecordBatch(*batch).ok());
    }
    ASSERT_TRUE(writer->Close().ok() && output->Close().ok());
    Foreign file = file_with(0, ColumnRole::id, array_of(arrow::utf8(), "[]"));
    DataOptions data = file.options;
    data.format = DataFormat::arrow_ipc;
    data.train = {path};
    const auto batch = read_all(data);
    ASSERT_TRUE(batch.ok()) << batch.status().message();
    Bags expected;
    for (const char* text : {"a", "a", "a", "b", "c", "d"}) expected.push_back({hash_bytes(text)});
    EXPECT_EQ(bags_of(batch->ids[0]), expected) << deltas;
  }
}

TEST(ArrowStream, that_is_cut_or_followed_by_more_is_an_error) {
  Foreign file = file_with(2, ColumnRole::id, array_of(arrow::int64(), "[1, 2]"));
  const DataOptions options = file.write(".arrows");
  const std::string& path = options.train[0];
  const std::string whole = *read_text(posix_files(), path);
  const auto failure_with = [&](const std::string& bytes) {
    auto rewritten = *posix_files().create(path);
    EXPECT_TRUE(rewritten->append(std::as_bytes(std::span(bytes))).ok() && rewritten->close().ok());
    return failure_of(options);
  };
  constexpr size_t kEndMark = 8;
  EXPECT_EQ(failure_with(whole.substr(0, whole.size() - kEndMark)), "read") << "told, no error";
  int between_messages = 0;
  for (size_t size = 8; size < whole.size() - kEndMark; ++size) {
    const std::string failure = failure_with(whole.substr(0, size));
    between_messages += failure == "read" ? 1 : 0;
    EXPECT_TRUE(failure == "read" || failure.starts_with(path)) << size << failure;
  }
  EXPECT_EQ(between_messages, 1) << "behind the schema";
  EXPECT_EQ(failure_with(whole + whole),
            path + ": " + std::to_string(whole.size()) + " bytes follow the end of its stream");
  EXPECT_THAT(failure_with("FEA1" + whole), HasSubstr(path + ": is Feather of version 1"));
}

TEST_P(ColumnarTypes, labels_and_times_may_be_text) {
  Foreign file;
  file.add_array("y", ColumnRole::label, array_of(arrow::utf8(), R"(["1", "0.5", "False"])"));
  file.add_array("t", ColumnRole::time,
                 array_of(arrow::utf8(), R"(["1970-01-02", "-5", "1970-01-01T00:01Z"])"));
  const ColumnBatch batch = read(file);
  EXPECT_THAT(batch.labels, ElementsAre(1, 0.5f, 0));
  EXPECT_THAT(batch.times, ElementsAre(86400, -5, 60));
  EXPECT_THAT(failure(ColumnRole::time, array_of(arrow::utf8(), R"(["5", ""])")),
              HasSubstr("column 'x', row 1: no value"));
}

TEST_P(ColumnarTypes, times_may_have_fractions_and_are_rounded_down) {
  EXPECT_THAT(
      read(file_with(3, ColumnRole::time, array_of(arrow::float64(), "[1413883815.7, -0.5, 7]")))
          .times,
      ElementsAre(1413883815, -1, 7));
  EXPECT_THAT(
      read(file_with(3, ColumnRole::time,
                     array_of(arrow::decimal128(12, 1), R"(["1413883815.7", "-0.5", "7.0"])")))
          .times,
      ElementsAre(1413883815, -1, 7));
}

TEST(OrcFile, has_times_as_seconds) {
  Foreign file;
  file.label(3);
  file.add_array("t", ColumnRole::time,
                 array_of(arrow::timestamp(arrow::TimeUnit::NANO), "[1999999999, -1, 0]"));
  const auto batch = read_all(file.write(".orc"));
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_THAT(batch->times, ElementsAre(1, -1, 0));
}

TEST(KeyColumn, is_read_of_every_columnar_format) {
  for (const char* suffix : {".parquet", ".arrow", ".arrows", ".orc"}) {
    Foreign file = file_with(3, ColumnRole::id, array_of(arrow::int64(), "[1, 2, 3]"));
    file.add_array("k", ColumnRole::ignore, array_of(arrow::utf8(), R"(["a", null, "b"])"));
    const DataOptions options = file.write(suffix);
    const auto cells = read_key_column(options.format, options.train[0], "k", posix_files());
    ASSERT_TRUE(cells.ok()) << cells.status().message();
    EXPECT_THAT(*cells, ElementsAre("a", "", "b")) << suffix;
  }
}

TEST(ArrowTypes, views_runs_and_dictionaries_of_all_are_read_as_what_they_stand_for) {
  const auto id = [](const char* text) { return std::vector<uint64_t>{hash_bytes(text)}; };
  const auto ids = [](std::shared_ptr<arrow::Array> array) {
    Foreign file = file_with(array->length(), ColumnRole::id, array);
    const auto batch = read_all(file.write(".arrow"));
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    return batch.ok() ? bags_of(batch->ids[0]) : Bags();
  };
  const std::string long_text = "longer than the twelve bytes that are in a view";
  for (const auto& type : {arrow::utf8_view(), arrow::binary_view(), arrow::large_binary()}) {
    EXPECT_EQ(ids(array_of(type, R"(["a", null, "", ")" + long_text + "\"]")),
              (Bags{id("a"), {}, {}, id(long_text.c_str())}));
    EXPECT_EQ(ids(coded(type, "[1, null, 0, 1]", R"(["a", "b"])")),
              (Bags{id("b"), {}, id("a"), id("b")}));
  }
  for (const auto& type : {arrow::list_view(arrow::int32()), arrow::large_list_view(arrow::int32()),
                           arrow::large_list(arrow::int32())}) {
    EXPECT_EQ(ids(array_of(type, "[[1, 2], null, [], [3]]")), (Bags{{1, 2}, {}, {}, {3}}));
  }
  EXPECT_EQ(ids(array_of(arrow::fixed_size_list(arrow::int8(), 2), "[[1, 2], null, [null, 3]]")),
            (Bags{{1, 2}, {}, {3}}));
  // Views may go back and share items.
  const auto shared = arrow::ListViewArray::FromArrays(*array_of(arrow::int32(), "[2, 0, 1]"),
                                                       *array_of(arrow::int32(), "[2, 3, 0]"),
                                                       *array_of(arrow::int64(), "[5, 6, 7, 8]"));
  EXPECT_EQ(ids(*shared), (Bags{{7, 8}, {5, 6, 7}, {}}));
  EXPECT_EQ(ids(coded(arrow::int64(), "[1, null, 0]", "[4, null]")), (Bags{{}, {}, {4}}));
  EXPECT_EQ(ids(coded(arrow::decimal128(5, 1), "[1, 0]", R"(["4.0", "5.0"])")), (Bags{{5}, {4}}));
  const auto runs = *arrow::RunEndEncodedArray::Make(5, array_of(arrow::int32(), "[2, 3, 5]"),
                                                     array_of(arrow::int64(), "[8, null, 9]"));
  EXPECT_EQ(ids(runs), (Bags{{8}, {8}, {}, {9}, {9}}));
  EXPECT_EQ(ids(runs->Slice(1)), (Bags{{8}, {}, {9}, {9}}));

  Foreign file =
      file_with(3, ColumnRole::dense, coded(arrow::float64(), "[1, null, 0]", "[4, 0.5]"));
  file.add_array("t", ColumnRole::time,
                 coded(arrow::timestamp(arrow::TimeUnit::MILLI), "[1, 1, 0]", "[1999, -1]"));
  const auto batch = read_all(file.write(".arrow"));
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_THAT(batch->dense[0], ElementsAre(0.5f, IsNan(), 4.0f));
  EXPECT_THAT(batch->times, ElementsAre(-1, -1, 1));
}

}  // namespace
}  // namespace recmill::reader
