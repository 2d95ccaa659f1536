// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/columnar_reader.h"

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/hash.h"
#include "base/temporary_folder.h"
#include "base/testing/shared_files.h"
#include "reader/arrow/arrow_files.h"
#include "reader/guess/guess_schema.h"
#include "reader/reader_contract.h"
#include "reader/row_split.h"
#include "reader/testing/change_long_ago.h"
#include "reader/testing/foreign_file.h"
#include "reader/testing/generated_data.h"

namespace recmill::reader {
namespace {

using ::testing::HasSubstr;

/// Three files of different sizes; row groups of 100 rows.
DataOptions three_files(const std::string& suffix, const DataSchema& schema) {
  DataOptions options = options_for("a" + suffix, schema);
  options.train.clear();
  options.path = folder();
  for (int part = 0; part < 3; ++part) {
    const std::string name =
        std::to_string(schema.ids.size()) + "-" + std::to_string(part) + suffix;
    const ColumnBatch batch = generate(schema, static_cast<uint64_t>(part), 250 + 97 * part);
    EXPECT_TRUE(write_file(folder() + "/" + name, schema, batch).ok());
    options.train.push_back(name);
  }
  return options;
}

DataOptions with_split(DataOptions options, SplitKind by, const std::string& column = "") {
  options.cache = folder() + "/cache";
  options.split.by = by;
  options.split.eval_fraction = 0.3;
  options.split.column = column;
  return options;
}

/// Files of `suffix` in which every 9th row has an infinite number.
DataOptions with_bad_rows(const std::string& suffix) {
  const DataSchema schema = schema_of_all_kinds();
  ColumnBatch batch = generate(schema, 41, 700);
  for (size_t row = 4; row < 700; row += 9) {
    batch.dense[2][row] = -std::numeric_limits<float>::infinity();
  }
  EXPECT_TRUE(write_file(folder() + "/infinite" + suffix, schema, batch).ok());
  DataOptions options = options_for(folder() + "/infinite" + suffix, schema);
  options.on_bad_row = OnBadRow::skip;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Columnar, ReaderContract,
    ::testing::Values(
        ReaderCase{"parquet", three_files(".parquet", criteo_schema())},
        ReaderCase{"parquet_bags", three_files(".parquet", schema_of_all_kinds())},
        ReaderCase{"arrow", three_files(".arrow", criteo_schema())},
        ReaderCase{"arrow_bags", three_files(".arrow", schema_of_all_kinds())},
        ReaderCase{"fraction",
                   with_split(three_files(".parquet", criteo_schema()), SplitKind::fraction)},
        ReaderCase{"hash",
                   with_split(three_files(".arrow", schema_of_all_kinds()), SplitKind::hash, "C1")},
        ReaderCase{"time_eval",
                   with_split(three_files(".parquet", schema_of_all_kinds()), SplitKind::time),
                   Subset::eval, false},
        ReaderCase{"skipping", with_bad_rows(".parquet")},
        ReaderCase{"skipping_time", with_split(with_bad_rows(".arrow"), SplitKind::time)}),
    ReaderCase::name_of);

TEST(ColumnarIndex, of_a_split_is_kept_and_used_however_many_slices_a_file_has) {
  for (const char* suffix : {".parquet", ".arrow"}) {
    DataOptions options =
        with_split(three_files(suffix, schema_of_all_kinds()), SplitKind::hash, "C1");
    options.cache = folder() + "/indexes" + suffix;
    for (const std::string& name : options.train) change_long_ago(folder() + "/" + name);
    int indexes = 0;
    SharedFiles files(posix_files(), [&](const std::string& changed) {
      indexes += changed.ends_with(".rows") ? 1 : 0;
      return Status();
    });
    ThreadPool pool(2);
    for (int time = 0; time < 2; ++time) {
      const auto reader = open_reader(options, Subset::train, 0, pool, files);
      ASSERT_TRUE(reader.ok() && (*reader)->rows().ok());
      EXPECT_EQ(indexes, 3) << suffix;
    }
  }
}

std::shared_ptr<arrow::Array> dictionary(const std::vector<std::string>& words,
                                         const std::vector<std::optional<int8_t>>& codes) {
  arrow::StringBuilder text;
  for (const auto& word : words) EXPECT_TRUE(text.Append(word).ok());
  arrow::Int8Builder index;
  for (const auto& code : codes)
    EXPECT_TRUE((code ? index.Append(*code) : index.AppendNull()).ok());
  return *arrow::DictionaryArray::FromArrays(arrow::dictionary(arrow::int8(), arrow::utf8()),
                                             *index.Finish(), *text.Finish());
}

class ForeignFile : public ::testing::TestWithParam<std::string> {};

TEST_P(ForeignFile, ids_of_every_type_become_64_bits) {
  Foreign file;
  file.label(3);
  using Text = std::optional<std::string>;
  file.add<arrow::Int32Builder, int32_t>("i32", ColumnRole::id, arrow::Int32Builder(),
                                         {-1, std::nullopt, 7});
  file.add<arrow::UInt32Builder, uint32_t>("u32", ColumnRole::id, arrow::UInt32Builder(),
                                           {0xFFFFFFFF, 1, 2});
  file.add<arrow::Int64Builder, int64_t>("i64", ColumnRole::id, arrow::Int64Builder(),
                                         {INT64_MIN, 1, 2});
  file.add<arrow::UInt64Builder, uint64_t>("u64", ColumnRole::id, arrow::UInt64Builder(),
                                           {UINT64_MAX, 1, 2});
  file.add<arrow::StringBuilder, std::string>("hex", ColumnRole::id, arrow::StringBuilder(),
                                              {Text("ffffffffffffffff"), Text("0a"), Text("")},
                                              IdText::hex);
  file.add<arrow::LargeStringBuilder, std::string>(
      "decimal", ColumnRole::id, arrow::LargeStringBuilder(), {Text("-2"), std::nullopt, Text("5")},
      IdText::integer);
  file.add<arrow::BinaryBuilder, std::string>("text", ColumnRole::id, arrow::BinaryBuilder(),
                                              {Text("a b"), Text("c"), std::nullopt});
  file.add_array("coded", ColumnRole::id, dictionary({"x", "y"}, {1, std::nullopt, 0}));
  const auto batch = read_all(file.write(GetParam()));
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  const auto bags = [&](size_t column) { return bags_of(batch->ids[column]); };
  EXPECT_EQ(bags(0), (Bags{{UINT64_MAX}, {}, {7}}));
  EXPECT_EQ(bags(1), (Bags{{0xFFFFFFFF}, {1}, {2}}));
  EXPECT_EQ(bags(2), (Bags{{uint64_t{1} << 63}, {1}, {2}}));
  EXPECT_EQ(bags(3), (Bags{{UINT64_MAX}, {1}, {2}}));
  EXPECT_EQ(bags(4), (Bags{{UINT64_MAX}, {10}, {}}));
  EXPECT_EQ(bags(5), (Bags{{static_cast<uint64_t>(-2)}, {}, {5}}));
  EXPECT_EQ(bags(6), (Bags{{hash_bytes("a b")}, {hash_bytes("c")}, {}}));
  EXPECT_EQ(bags(7), (Bags{{hash_bytes("y")}, {}, {hash_bytes("x")}}));
}

TEST_P(ForeignFile, lists_are_bags_and_lists_beside_them_their_weights) {
  Foreign file;
  file.label(4);
  auto ids = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder id_lists(arrow::default_memory_pool(), ids);
  auto weights = std::make_shared<arrow::DoubleBuilder>();
  arrow::LargeListBuilder weight_lists(arrow::default_memory_pool(), weights);
  ASSERT_TRUE(id_lists.Append().ok() && ids->AppendValues({5, -1}).ok());
  ASSERT_TRUE(id_lists.AppendNull().ok() && id_lists.AppendEmptyValue().ok());
  ASSERT_TRUE(id_lists.Append().ok() && ids->Append(9).ok());
  ASSERT_TRUE(weight_lists.Append().ok() && weights->AppendValues({0.5, 2}).ok());
  ASSERT_TRUE(weight_lists.AppendEmptyValue().ok() && weight_lists.AppendNull().ok());
  ASSERT_TRUE(weight_lists.Append().ok() && weights->Append(-1).ok());
  file.add_array("seen", ColumnRole::id, *id_lists.Finish());
  file.add_array("seen.weights", ColumnRole::ignore, *weight_lists.Finish());
  const auto batch = read_all(file.write(GetParam()));
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->ids[0].offsets, (std::vector<int64_t>{0, 2, 2, 2, 3}));
  EXPECT_EQ(batch->ids[0].ids, (std::vector<uint64_t>{5, UINT64_MAX, 9}));
  EXPECT_EQ(batch->ids[0].weights, (std::vector<float>{0.5f, 2, -1}));
}

TEST_P(ForeignFile, numbers_of_every_type_are_floats_and_timestamps_are_seconds) {
  Foreign file;
  file.label(3);
  file.add<arrow::DoubleBuilder, double>("double", ColumnRole::dense, arrow::DoubleBuilder(),
                                         {0.1, std::nullopt, 3.0});
  file.add<arrow::Int64Builder, int64_t>("long", ColumnRole::dense, arrow::Int64Builder(),
                                         {-5, 16777217, std::nullopt});
  file.add<arrow::BooleanBuilder, bool>("bool", ColumnRole::dense, arrow::BooleanBuilder(),
                                        {true, false, std::nullopt});
  file.add<arrow::TimestampBuilder, int64_t>(
      "when", ColumnRole::time,
      arrow::TimestampBuilder(arrow::timestamp(arrow::TimeUnit::MICRO),
                              arrow::default_memory_pool()),
      {1'999'999, -1, 0});
  file.options.columns[2].missing = {"-5"};
  const auto batch = read_all(file.write(GetParam()));
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  using ::testing::ElementsAre;
  using ::testing::IsNan;
  EXPECT_THAT(batch->dense[0], ElementsAre(0.1f, IsNan(), 3.0f));
  EXPECT_THAT(batch->dense[1], ElementsAre(IsNan(), 16777216.0f, IsNan()));
  EXPECT_THAT(batch->dense[2], ElementsAre(1.0f, 0.0f, IsNan()));
  EXPECT_THAT(batch->times, ElementsAre(1, -1, 0));
  EXPECT_THAT(batch->labels, ElementsAre(1.0f, 1.0f, 1.0f));
}

TEST_P(ForeignFile, errors_name_file_column_type_and_what_was_expected) {
  Foreign file;
  file.label(2);
  file.add<arrow::StringBuilder, std::string>("name", ColumnRole::id, arrow::StringBuilder(),
                                              {std::string("0f"), std::string("xyz")}, IdText::hex);
  file.add<arrow::DoubleBuilder, double>("price", ColumnRole::dense, arrow::DoubleBuilder(),
                                         {1.0, std::nullopt});
  file.add<arrow::Date32Builder, int32_t>("when", ColumnRole::ignore, arrow::Date32Builder(),
                                          {1, 2});
  const DataOptions good = file.write(GetParam());
  const std::string at = good.train[0] + ": column 'name'";
  EXPECT_THAT(failure_of(good), HasSubstr(at));
  EXPECT_THAT(failure_of(good), HasSubstr("xyz"));

  DataOptions options = good;
  options.columns[1].name = "nowhere";
  EXPECT_EQ(failure_of(options), good.train[0] +
                                     ": column 'nowhere' is missing; the file has "
                                     "'click', 'name', 'price', 'when'");
  options = good;
  options.columns[1].role = ColumnRole::dense;
  EXPECT_EQ(failure_of(options),
            at + " is string; role dense needs a float, a decimal or an integer");
  options = good;
  options.columns[1].role = ColumnRole::ignore;
  options.columns[2].role = ColumnRole::id;
  options.columns[2].name = "when";
  EXPECT_EQ(failure_of(options),
            good.train[0] +
                ": column 'when' is date32[day]; role id needs a whole number, a string, binary, "
                "a list of one of these, a map of ids to weights or a list of structs of 'id' and "
                "'weight'");
  options.columns[2].name = "price";
  options.columns[2].role = ColumnRole::sample_weight;
  EXPECT_EQ(failure_of(options), good.train[0] + ": column 'price', row 1: no value");
  options.columns[0].role = ColumnRole::ignore;
  EXPECT_EQ(failure_of(options), good.train[0] + ": no column has the role label");
  options.columns.clear();
  EXPECT_THAT(failure_of(options), HasSubstr("data.columns must name them"));
}

constexpr int64_t kRowsWithBad = 40;

// A file in which rows 3, 5, 7 ... 19 are bad, each for another reason.
Foreign file_with_bad_rows() {
  constexpr int64_t kRows = kRowsWithBad;
  Foreign file;
  using Text = std::optional<std::string>;
  using Whole = std::optional<int64_t>;
  std::vector<std::optional<double>> labels(kRows, 1.0), prices(kRows, 0.5);
  std::vector<std::optional<float>> weights(kRows, 2.0f);
  std::vector<Whole> times, groups(kRows, 7);
  for (int64_t row = 0; row < kRows; ++row) times.push_back(row);
  std::vector<Text> names(kRows, "0f");
  auto ids = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder bags(arrow::default_memory_pool(), ids);
  auto shares = std::make_shared<arrow::DoubleBuilder>();
  arrow::ListBuilder bag_weights(arrow::default_memory_pool(), shares);
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_TRUE(bags.Append().ok() && ids->AppendValues({5, 1}).ok());
    EXPECT_TRUE(bag_weights.Append().ok() && shares->Append(1).ok());
    if (row == 17) continue;
    EXPECT_TRUE((row == 19 ? shares->AppendNull() : shares->Append(2)).ok());
  }
  labels[3] = weights[7] = times[9] = groups[11] = std::nullopt;
  labels[5] = std::numeric_limits<double>::quiet_NaN();
  names[13] = "xyz";
  prices[15] = 1e300;  // no float
  prices[16] = std::nullopt;
  file.add<arrow::DoubleBuilder, double>("click", ColumnRole::label, arrow::DoubleBuilder(),
                                         labels);
  file.add<arrow::FloatBuilder, float>("weight", ColumnRole::sample_weight, arrow::FloatBuilder(),
                                       weights);
  file.add<arrow::Int64Builder, int64_t>("time", ColumnRole::time, arrow::Int64Builder(), times);
  file.add<arrow::Int64Builder, int64_t>("user", ColumnRole::group, arrow::Int64Builder(), groups);
  file.add<arrow::StringBuilder, std::string>("name", ColumnRole::id, arrow::StringBuilder(), names,
                                              IdText::hex);
  file.add<arrow::DoubleBuilder, double>("price", ColumnRole::dense, arrow::DoubleBuilder(),
                                         prices);
  file.add_array("seen", ColumnRole::id, *bags.Finish());
  file.add_array("seen.weights", ColumnRole::ignore, *bag_weights.Finish());
  return file;
}

TEST_P(ForeignFile, bad_rows_fail_or_are_skipped_and_counted_up_to_the_limit) {
  DataOptions options = file_with_bad_rows().write(GetParam());
  options.cache = "";
  options.shuffle.window = 8;
  const std::vector<std::string> bad{"'click', row 3: no value",
                                     "'click', row 5: no value",
                                     "'weight', row 7: no value",
                                     "'time', row 9: no value",
                                     "'user', row 11: no value",
                                     "'name', row 13: 'xyz' is not a hexadecimal id",
                                     "'price', row 15: is not a finite number",
                                     "'seen', row 17: its weights are not as many as its ids",
                                     "'seen', row 19: a weight is not a finite number"};
  const std::string at = options.train[0] + ": column ";
  EXPECT_EQ(failure_of(options), at + bad[0]);
  options.on_bad_row = OnBadRow::skip;
  for (size_t limit = 0; limit < bad.size(); ++limit) {
    options.bad_row_limit = static_cast<int64_t>(limit);
    const std::string message = failure_of(options);
    EXPECT_TRUE(message.starts_with(at + bad[limit])) << message;
    EXPECT_THAT(message, HasSubstr("(and " + std::to_string(limit) + " bad rows before; "));
  }
  options.bad_row_limit = static_cast<int64_t>(bad.size());
  for (const SplitKind by : {SplitKind::file, SplitKind::fraction, SplitKind::time}) {
    options.split.by = by;
    options.split.eval_fraction = 0.5;
    const auto all = read_rows(options, Subset::all), train = read_rows(options);
    ASSERT_TRUE(all.ok() && train.ok()) << all.status().message() << train.status().message();
    EXPECT_EQ(all->batch.samples, kRowsWithBad - 9);
    EXPECT_EQ(all->counts.bad_rows, 9);
    EXPECT_EQ(train->counts.bad_rows, 9);
    EXPECT_EQ(std::ranges::count(all->batch.times, 16), 1) << "a missing dense value is none";
    if (by == SplitKind::time) {
      EXPECT_EQ(train->batch.samples, 16) << "of 31 rows";
    }
  }
}

TEST_P(ForeignFile, a_guess_takes_roles_from_types_and_names) {
  constexpr int32_t kRows = 400;
  std::vector<std::optional<int32_t>> clicks, shops;
  std::vector<std::optional<double>> prices, users;
  std::vector<std::optional<int64_t>> times;
  std::vector<std::optional<std::string>> words;
  auto ids = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder bags(arrow::default_memory_pool(), ids);
  for (int32_t row = 0; row < kRows; ++row) {
    clicks.emplace_back(row % 2);
    shops.emplace_back(row % 7);
    prices.emplace_back(row * 0.5);
    users.emplace_back(3e8 + row % 51);  // more digits than a float32 holds
    times.emplace_back(row);
    words.emplace_back("w" + std::to_string(row % 30));
    ASSERT_TRUE(bags.Append().ok() && ids->AppendValues({row % 11, 99}).ok());
  }
  Foreign file;
  file.add<arrow::Int32Builder, int32_t>("shop", ColumnRole::ignore, arrow::Int32Builder(), shops);
  file.add<arrow::Int32Builder, int32_t>("bought", ColumnRole::ignore, arrow::Int32Builder(),
                                         clicks);
  file.add<arrow::DoubleBuilder, double>("price", ColumnRole::ignore, arrow::DoubleBuilder(),
                                         prices);
  file.add<arrow::TimestampBuilder, int64_t>(
      "seen_at", ColumnRole::ignore,
      arrow::TimestampBuilder(arrow::timestamp(arrow::TimeUnit::SECOND),
                              arrow::default_memory_pool()),
      times);
  file.add<arrow::StringBuilder, std::string>("word", ColumnRole::ignore, arrow::StringBuilder(),
                                              words);
  file.add_array("list", ColumnRole::ignore, *bags.Finish());
  file.add_array("pair", ColumnRole::ignore,
                 *arrow::StructArray::Make({file.arrays[0]}, std::vector<std::string>{"a"}));
  users[3].reset();
  file.add<arrow::DoubleBuilder, double>("user_id", ColumnRole::ignore, arrow::DoubleBuilder(),
                                         users);
  const DataOptions written = file.write(GetParam());
  const auto guess = guess_schema(posix_files(), written.train[0]);
  ASSERT_TRUE(guess.ok()) << guess.status().message();
  EXPECT_EQ(guess->options.format, written.format);
  EXPECT_EQ(guess->estimated_rows, kRows);
  const std::vector<std::pair<std::string, ColumnRole>> roles{
      {"shop", ColumnRole::id},      {"bought", ColumnRole::label}, {"price", ColumnRole::dense},
      {"seen_at", ColumnRole::time}, {"word", ColumnRole::id},      {"list", ColumnRole::id},
      {"pair.a", ColumnRole::id},    {"user_id", ColumnRole::id}};
  ASSERT_EQ(guess->options.columns.size(), roles.size());
  for (size_t i = 0; i < roles.size(); ++i) {
    EXPECT_EQ(guess->options.columns[i].name, roles[i].first);
    EXPECT_EQ(guess->options.columns[i].role, roles[i].second) << roles[i].first;
  }
  ASSERT_EQ(guess->tables.size(), 5u);
  EXPECT_EQ(guess->tables[0].distinct, 7);
  EXPECT_EQ(guess->tables[1].distinct, 30);
  EXPECT_EQ(guess->tables[2].distinct, 12);
  EXPECT_EQ(guess->tables[3].distinct, 7);
  EXPECT_EQ(guess->tables[4].distinct, 51);
  DataOptions options = guess->options;
  options.cache = "";
  const auto read = read_rows(options);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->batch.samples, kRows);
  EXPECT_EQ(read->batch.times[399], 399);
  EXPECT_THAT(guess->toml, HasSubstr(GetParam() == ".parquet" ? "format = \"parquet\""
                                                              : "format = \"arrow_ipc\""));
}

TEST_P(ForeignFile, a_split_by_hash_keeps_equal_cells_together_even_of_a_column_without_a_role) {
  Foreign file;
  constexpr int64_t kRows = 300;
  std::vector<std::optional<int32_t>> users, numbers;
  for (int32_t row = 0; row < kRows; ++row) {
    users.emplace_back(row % 50);
    numbers.emplace_back(row);
  }
  file.label(kRows);
  file.add<arrow::Int32Builder, int32_t>("user", ColumnRole::ignore, arrow::Int32Builder(), users);
  file.add<arrow::Int32Builder, int32_t>("row", ColumnRole::id, arrow::Int32Builder(), numbers);
  DataOptions options = file.write(GetParam());
  options.cache = "";
  options.split.by = SplitKind::hash;
  options.split.column = "user";
  options.split.eval_fraction = 0.4;
  const auto train = read_all(options);
  const auto eval = read_rows(options, Subset::eval);
  ASSERT_TRUE(train.ok() && eval.ok()) << train.status().message() << eval.status().message();
  EXPECT_EQ(train->samples + eval->batch.samples, kRows);
  std::set<uint64_t> seen, held_out;
  for (const uint64_t row : train->ids[0].ids) seen.insert(row % 50);
  for (const uint64_t row : eval->batch.ids[0].ids) held_out.insert(row % 50);
  EXPECT_GT(held_out.size(), 10u);
  EXPECT_EQ(seen.size() + held_out.size(), 50u) << "no user is on both sides";
  options.split.column = "nowhere";
  EXPECT_EQ(failure_of(options), "data.split.column: the data has no column 'nowhere'");
  options.split.by = SplitKind::time;
  EXPECT_EQ(failure_of(options), RowSplit::no_time_column().message());
}

INSTANTIATE_TEST_SUITE_P(Columnar, ForeignFile, ::testing::Values(".parquet", ".arrow", ".arrows"),
                         [](const auto& info) { return info.param.substr(1); });

class DamagedFile : public ::testing::TestWithParam<std::string> {
 protected:
  DamagedFile() {
    batch_ = generate(schema_, 23, 300);
    EXPECT_TRUE(write_file(path_, schema_, batch_).ok());
    bytes_ = *read_text(posix_files(), path_);
  }
  void replace_file(std::string_view bytes) {
    auto file = posix_files().create(path_);
    ASSERT_TRUE(file.ok() && (*file)->append(std::as_bytes(std::span(bytes))).ok());
    ASSERT_TRUE((*file)->close().ok());
  }
  /// Reads `bytes` as a file. It fails with one line that names it, or it is the data.
  void expect_error_or_data(const std::string& bytes, const std::string& what) {
    replace_file(bytes);
    const auto read = read_rows(options_for(path_, schema_));
    if (!read.ok()) {
      EXPECT_THAT(read.status().message(), HasSubstr(path_)) << what;
      EXPECT_EQ(read.status().message().find('\n'), std::string::npos) << what;
      ++errors_;
      return;
    }
    ++silent_;
    EXPECT_TRUE(read->schema == schema_ && read->samples() == samples_of(schema_, batch_)) << what;
  }

  const DataSchema schema_ = schema_of_all_kinds();
  const std::string path_ = folder() + "/damaged" + GetParam();
  ColumnBatch batch_;
  std::string bytes_;
  int errors_ = 0, silent_ = 0;
};

TEST_P(DamagedFile, cut_at_any_place_is_an_error) {
  const size_t step = std::max<size_t>(1, bytes_.size() / 200);
  for (size_t size = 0; size < bytes_.size(); size += step) {
    replace_file(bytes_.substr(0, size));
    EXPECT_THAT(failure_of(options_for(path_, schema_)), HasSubstr(path_)) << size;
  }
  EXPECT_NE(failure_of(options_for(path_ + "-none", schema_)), "read");
}

TEST_P(DamagedFile, one_flipped_bit_is_an_error_or_changes_nothing) {
  const Random random(99, Purpose::test);
  constexpr int kFlips = 600;
  for (int flip = 0; flip < kFlips; ++flip) {
    std::string damaged = bytes_;
    const uint64_t bit = random.below(bytes_.size() * 8, static_cast<uint64_t>(flip));
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    expect_error_or_data(damaged, "seed 99, bit " + std::to_string(bit) + " of " +
                                      std::to_string(bytes_.size() * 8));
  }
  EXPECT_GT(errors_, kFlips / 2) << "of the rest, " << silent_ << ", nothing is known";
}

INSTANTIATE_TEST_SUITE_P(Columnar, DamagedFile, ::testing::Values(".parquet", ".arrow"),
                         [](const auto& info) { return info.param.substr(1); });

TEST(ColumnarReader, levels_of_a_page_that_say_of_more_rows_that_they_have_a_value_are_an_error) {
  for (const ColumnRole role : {ColumnRole::id, ColumnRole::dense, ColumnRole::group}) {
    Foreign file;
    file.label(40);
    std::vector<std::optional<int64_t>> values(40);
    for (int64_t row = 0; row < 40; row += 2) values[static_cast<size_t>(row)] = row * row;
    file.add<arrow::Int64Builder, int64_t>("column", role, arrow::Int64Builder(), values);
    // No checksum, and an encoding that itself says how many values there are.
    parquet::WriterProperties::Builder properties;
    properties.disable_dictionary()->encoding(parquet::Encoding::DELTA_BINARY_PACKED);
    file.parquet_properties = properties.disable_statistics()->build();
    file.options.on_bad_row = OnBadRow::skip;
    file.options.bad_row_limit = 40;
    file.options.cache = "";
    const DataOptions options = file.write(".parquet");
    const std::string whole = *read_text(posix_files(), options.train[0]);
    int told = 0;
    for (size_t bit = 32; bit < 8 * std::min<size_t>(whole.size(), 250); ++bit) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      auto rewritten = *posix_files().create(options.train[0]);
      ASSERT_TRUE(rewritten->append(std::as_bytes(std::span(damaged))).ok());
      ASSERT_TRUE(rewritten->close().ok());
      told += failure_of(options).find(": levels and values do not agree") != std::string::npos;
    }
    EXPECT_GT(told, 10) << name_of(role);
  }
}

TEST(ColumnarReader, pages_decoded_straight_to_cells_equal_the_way_through_arrow_arrays) {
  const DataSchema schema = criteo_schema();
  const std::string path = folder() + "/straight.parquet";
  ASSERT_TRUE(write_file(path, schema, generate(schema, 29, 9000), 5000).ok());
  DataOptions options = options_for(path, schema);
  options.columns = written_columns(schema);
  const auto straight = read_all(options);
  // Only the way through arrays knows `missing`; no cell is this one.
  for (ColumnSpec& column : options.columns) column.missing = {"nowhere"};
  const auto arrays = read_all(options);
  ASSERT_TRUE(straight.ok() && arrays.ok());
  EXPECT_EQ(samples_of(schema, *straight), samples_of(schema, *arrays));

  Foreign file;
  file.label(4);
  file.add<arrow::Int32Builder, int32_t>("i32", ColumnRole::id, arrow::Int32Builder(),
                                         {-1, std::nullopt, 7, INT32_MIN});
  file.add<arrow::UInt32Builder, uint32_t>("u32", ColumnRole::id, arrow::UInt32Builder(),
                                           {0xFFFFFFFF, 1, std::nullopt, 0x80000000});
  file.add<arrow::UInt16Builder, uint16_t>("u16", ColumnRole::dense, arrow::UInt16Builder(),
                                           {0xFFFF, 1, std::nullopt, 2});
  file.add<arrow::Int8Builder, int8_t>("i8", ColumnRole::id, arrow::Int8Builder(),
                                       {-128, 1, std::nullopt, 2});
  file.add<arrow::DoubleBuilder, double>("f64", ColumnRole::dense, arrow::DoubleBuilder(),
                                         {1e30, 0.1, std::nullopt, -0.0});
  file.add<arrow::Int64Builder, int64_t>("i64", ColumnRole::group, arrow::Int64Builder(),
                                         {-1, 1, 2, INT64_MAX});
  DataOptions foreign = file.write(".parquet");
  const auto one = read_rows(foreign);
  for (ColumnSpec& column : foreign.columns) column.missing = {"nowhere"};
  const auto other = read_rows(foreign);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->samples(), other->samples());
}

TEST(ColumnarReader, a_column_chunk_too_large_to_hold_is_streamed_and_sliced) {
  DataSchema schema;
  schema.dense = {"x"};
  schema.ids = {"user"};
  const int64_t rows = 250'000;  // 2 MB of ids that no dictionary helps
  ColumnBatch batch = generate(schema, 31, rows, /*integers=*/true);
  const Random random(31, Purpose::test);
  IdColumn& users = batch.ids[0];
  for (int64_t row = 0; row < rows; ++row) users.offsets[row + 1] = row + 1;
  users.ids.resize(rows);
  for (int64_t row = 0; row < rows; ++row) users.ids[row] = random.bits64(row);
  const std::string path = folder() + "/large.parquet";
  ASSERT_TRUE(write_file(path, schema, batch, rows).ok());
  DataOptions options = options_for(path, schema);
  options.shuffle.window = 7000;
  ThreadPool pool(2);
  auto reader = open_reader(options, Subset::train, 0, pool, posix_files());
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  const auto expected = samples_of(schema, batch);
  for (const int64_t first : {0, 6990, 123'456, 249'990, 7000}) {
    ColumnBatch read;
    ASSERT_TRUE((*reader)->read(0, first, 20'000, read).ok());
    const auto end = std::min(first + 20'000, rows);
    EXPECT_TRUE(samples_of(schema, read) ==
                std::vector<std::string>(expected.begin() + first, expected.begin() + end))
        << first;
  }
}

TEST(ColumnarReader, splits_keep_the_rows_that_the_decider_names_one_by_one) {
  for (const std::string suffix : {".parquet", ".arrow"}) {
    const DataOptions files = three_files(suffix, schema_of_all_kinds());
    const auto all = read_rows(files, Subset::all);
    ASSERT_TRUE(all.ok()) << all.status().message();
    const auto samples = all->samples();
    auto times = all->batch.times;
    std::ranges::sort(times);
    for (const DataOptions& options :
         {with_split(files, SplitKind::fraction), with_split(files, SplitKind::time),
          with_split(files, SplitKind::hash, "group"), with_split(files, SplitKind::hash)}) {
      size_t kept = 0;
      for (const Subset subset : {Subset::train, Subset::eval}) {
        RowSplit split = *RowSplit::make(options.split, subset);
        const int64_t before = rows_before_evaluation(all->batch.samples, 0.3);
        split = split.with_boundary(times[static_cast<size_t>(before)]);
        std::vector<std::string> expected;
        for (int64_t row = 0, file = 0, first = 0; row < all->batch.samples; ++row) {
          if (row == first + 250 + 97 * file) first += 250 + 97 * file++;
          const uint64_t group = all->batch.groups[row];
          const std::string bytes(reinterpret_cast<const char*>(&group), sizeof group);
          const bool keeps = options.split.by == SplitKind::fraction
                                 ? split.keeps_number(options.train[file], row - first)
                             : options.split.by == SplitKind::time
                                 ? split.keeps_time(all->batch.times[row])
                                 : split.keeps_key(hash_bytes(bytes));
          if (keeps) expected.push_back(samples[row]);
        }
        for (const char* often : {"indexed", "found in the cache"}) {
          const auto got = read_rows(options, subset);
          ASSERT_TRUE(got.ok()) << got.status().message();
          kept += got->samples().size();
          if (options.split.by == SplitKind::hash && options.split.column.empty()) continue;
          EXPECT_EQ(got->samples(), expected) << name_of(options.split.by) << often;
        }
      }
      EXPECT_EQ(kept, 2 * samples.size());
    }
  }
}

TEST(ColumnarReader, a_split_that_leaves_a_side_without_rows_is_the_error_of_every_reader) {
  DataOptions options =
      with_split(three_files(".parquet", schema_of_all_kinds()), SplitKind::fraction);
  options.split.eval_fraction = 1;
  EXPECT_EQ(failure_of(options), "data.split.eval_fraction: 1 leaves no rows for training");
  options.split.eval_fraction = 1.5;
  EXPECT_EQ(failure_of(options),
            "data.split.eval_fraction: must be at least 0 and at most 1, is 1.5");
  options.split.by = SplitKind::time;
  options.split.eval_fraction = 0.5;
  options.split.boundary = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(failure_of(options),
            "data.split.boundary: no row for training: none has a time before "
            "-9223372036854775808");
}

TEST(ColumnarReader, files_that_differ_in_their_columns_are_refused_by_name) {
  DataSchema schema = criteo_schema();
  const std::string one = folder() + "/one.parquet", two = folder() + "/two.parquet";
  ASSERT_TRUE(write_file(one, schema, generate(schema, 1, 10)).ok());
  schema.dense.pop_back();
  ASSERT_TRUE(write_file(two, schema, generate(schema, 1, 10)).ok());
  DataOptions options = options_for(one, schema);
  options.train.push_back(two);
  EXPECT_THAT(failure_of(options), HasSubstr(two + ": its columns are not those of " + one));
}

TEST_P(ForeignFile, labels_outside_0_to_1_and_negative_sample_weights_are_bad_rows) {
  Foreign file;
  file.add<arrow::DoubleBuilder, double>("y", ColumnRole::label, arrow::DoubleBuilder(),
                                         {0.5, 5.0, 1e-300, -1.0, 1.0, 1.0});
  file.add<arrow::FloatBuilder, float>("w", ColumnRole::sample_weight, arrow::FloatBuilder(),
                                       {1, 1, 0, 1, -0.5f, 2});
  DataOptions options = file.write(GetParam());
  EXPECT_THAT(read_all(options).status().message(),
              HasSubstr("column 'y', row 1: 5 is not a label: it lies outside [0, 1]"));
  options.on_bad_row = OnBadRow::skip;
  options.cache = "";
  auto batch = read_all(options);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  using ::testing::ElementsAre;
  EXPECT_THAT(batch->labels, ElementsAre(0.5f, 0.0f, 1.0f));
  EXPECT_THAT(batch->sample_weights, ElementsAre(1.0f, 0.0f, 2.0f));
  options.label.threshold = 1;
  batch = read_all(options);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_THAT(batch->labels, ElementsAre(0.0f, 1.0f, 0.0f, 0.0f, 1.0f)) << "less a bad weight";
  options.on_bad_row = OnBadRow::fail;
  EXPECT_THAT(read_all(options).status().message(),
              HasSubstr("column 'w', row 4: a sample weight below 0"));
}

TEST_P(ForeignFile, labels_that_are_integers_follow_the_rule_too) {
  Foreign file;
  file.add<arrow::Int64Builder, int64_t>("stars", ColumnRole::label, arrow::Int64Builder(),
                                         {1, 4, 5, -1});
  file.add<arrow::Int64Builder, int64_t>("t", ColumnRole::time, arrow::Int64Builder(),
                                         {0, 3600, 86400, -1});
  ColumnSpec& hour = file.options.columns.emplace_back();
  hour.name = "hour";
  hour.role = ColumnRole::id;
  hour.from = "t";
  hour.part = TimePart::hour;
  DataOptions options = file.write(GetParam());
  EXPECT_THAT(read_all(options).status().message(), HasSubstr("row 1: 4 is not a label"));
  options.label.positive = {"4.0", "5"};
  const auto batch = read_all(options);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->labels, (std::vector<float>{0, 1, 1, 0}));
  ASSERT_EQ(batch->ids.size(), 1u);
  EXPECT_EQ(batch->ids[0].ids, (std::vector<uint64_t>{0, 1, 0, 23}));
}

}  // namespace
}  // namespace recmill::reader
