// SPDX-License-Identifier: Apache-2.0
#include "reader/text/text_reader.h"

#include <bzlib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "base/hash.h"
#include "base/temporary_folder.h"
#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "reader/reader_contract.h"
#include "reader/testing/change_long_ago.h"
#include "reader/testing/text_rows.h"
#include "reader/writers/compressed_file.h"

namespace recmill::reader {
namespace {

using ::testing::HasSubstr;

// Criteo rows with missing cells and negative integers, all different.
std::string criteo_text(uint64_t seed, int64_t rows, int digits = 8) {
  const Random random(seed, Purpose::test);
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    text += std::to_string(random.bits(row, 0) & 1);
    for (int c = 0; c < 13; ++c) {
      const uint32_t bits = random.bits(row, 1 + c);
      text += '\t';
      if (bits % 5 != 0) text += std::to_string(static_cast<int>(bits % 3000) - 3);
    }
    for (int c = 0; c < 26; ++c) {
      const uint64_t bits = random.bits64(row, 100 + c);
      text += '\t';
      if (bits % 7 == 0) continue;
      for (int d = 0; d < digits; ++d) text += "0123456789abcdef"[(bits >> (4 * d)) & 15];
    }
    text += '\n';
  }
  return text;
}

// CSV with a header, quotes around a line end, bags, weights; lines end in CR LF.
std::string csv_text(int64_t rows) {
  const Random random(99, Purpose::test);
  std::string text = "when,word,y,x,list\r\n";
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t bits = random.bits64(row);
    text += std::to_string(1000 + row / 3) + ",";
    text +=
        bits % 4 == 0 ? "\"two\nlines, " + std::to_string(row) + "\"" : "w" + std::to_string(row);
    text +=
        "," + std::to_string(bits & 1) + "," + (bits % 5 ? std::to_string(bits % 999) : "") + ",";
    for (uint64_t i = 0; i < bits % 3; ++i)
      text += (i ? "|" : "") + std::to_string(bits >> i) + ":2";
    text += "\r\n";
  }
  return text;
}

// A log of 40 users; times repeat.
std::string behavior_text(int64_t rows) {
  const Random random(98, Purpose::test);
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    text += std::to_string(random.below(40, row, 0)) + "," +
            std::to_string(random.below(90, row, 1)) + "," +
            std::to_string(random.below(9, row, 2)) + ",pv," +
            std::to_string(random.below(500, row, 3)) + "\n";
  }
  return text;
}

void write_compressed(const std::string& path, const std::string& text) {
  auto file = posix_files().create(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto compressed = compress_by_name(path, *std::move(file));
  ASSERT_TRUE(compressed->append(std::as_bytes(std::span(text))).ok());
  ASSERT_TRUE(compressed->close().ok());
}

// Files of the contract's cases, made once.
const std::string& folder() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    Files& files = posix_files();
    for (int part = 0; part < 3; ++part) {
      const std::string path = folder.path() + "/part-" + std::to_string(part) + ".tsv";
      const std::string text = criteo_text(part, 300 + 97 * part);
      EXPECT_TRUE(write_atomically(files, path, text).ok());
      write_compressed(folder.path() + "/zip-" + std::to_string(part) + ".tsv.gz", text);
      write_compressed(folder.path() + "/zst-" + std::to_string(part) + ".tsv.zst", text);
    }
    EXPECT_TRUE(write_atomically(files, folder.path() + "/long.tsv", criteo_text(7, 9500)).ok());
    EXPECT_TRUE(write_atomically(files, folder.path() + "/mixed.csv", csv_text(900)).ok());
    EXPECT_TRUE(write_atomically(files, folder.path() + "/log.csv", behavior_text(700)).ok());
    return true;
  }();
  EXPECT_TRUE(made);
  return folder.path();
}

DataOptions criteo_options(const std::string& pattern = "part-*.tsv") {
  DataOptions options;
  options.path = folder();
  options.cache = folder() + "/cache";
  options.train = {pattern};
  return options;
}

DataOptions with_split(SplitKind kind, const std::string& pattern = "part-*.tsv") {
  DataOptions options = criteo_options(pattern);
  options.split.by = kind;
  options.split.eval_fraction = 0.3;
  options.split.column = "C1";
  return options;
}

DataOptions skipping() {
  const std::string path = folder() + "/bad.tsv";
  std::string text = criteo_text(3, 500);
  for (size_t at = 0, row = 0; at < text.size(); at = text.find('\n', at) + 1, ++row) {
    if (row % 7 == 3) text[at] = 'x';
  }
  EXPECT_TRUE(write_atomically(posix_files(), path, text).ok());
  DataOptions options = criteo_options("bad.tsv");
  options.on_bad_row = OnBadRow::skip;
  return options;
}

DataOptions csv_options() {
  DataOptions options = criteo_options("mixed.csv");
  options.format = DataFormat::csv;
  const auto add = [&](const char* name, ColumnRole role) -> ColumnSpec& {
    options.columns.emplace_back();
    options.columns.back().name = name;
    options.columns.back().role = role;
    return options.columns.back();
  };
  add("y", ColumnRole::label);
  add("x", ColumnRole::dense);
  add("word", ColumnRole::id);
  add("when", ColumnRole::time);
  ColumnSpec& list = add("list", ColumnRole::id);
  list.id_text = IdText::integer;
  list.list_separator = "|";
  list.weight_separator = ":";
  return options;
}

DataOptions by_time(DataOptions options) {
  options.split.by = SplitKind::time;
  options.split.eval_fraction = 0.25;
  return options;
}

DataOptions log_options() {
  DataOptions options = criteo_options("log.csv");
  options.format = DataFormat::behavior_log;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Text, ReaderContract,
    ::testing::Values(ReaderCase{"criteo", criteo_options()},
                      ReaderCase{"gzip", criteo_options("zip-*")},
                      ReaderCase{"zstd", criteo_options("zst-*")},
                      ReaderCase{"several_blocks", criteo_options("long.tsv")},
                      ReaderCase{"fraction", with_split(SplitKind::fraction, "long.tsv")},
                      ReaderCase{"hash", with_split(SplitKind::hash)},
                      ReaderCase{"skipping", skipping()}, ReaderCase{"csv", csv_options()},
                      ReaderCase{"time", by_time(csv_options())},
                      ReaderCase{"time_eval", by_time(csv_options()), Subset::eval, false},
                      ReaderCase{"behavior_log", log_options()},
                      ReaderCase{"behavior_log_eval", by_time(log_options()), Subset::eval, false}),
    ReaderCase::name_of);

class TextReaders : public ::testing::Test {
 protected:
  // All rows of a subset, as bytes.
  Result<std::vector<std::string>> rows(const DataOptions& options, Subset subset = Subset::train) {
    RECMILL_ASSIGN_OR_RETURN(reader_, open_reader(options, subset, 1, pool_, posix_files()));
    ColumnBatch batch;
    RECMILL_RETURN_IF_ERROR(reader_->read(0, 0, 1 << 20, batch));
    return samples_of(reader_->schema(), batch);
  }
  // The error of reading a file `name` with `text`.
  std::string error(const std::string& text, const std::string& name = "data.tsv") {
    const std::string path = bad_.path() + "/" + name;
    EXPECT_TRUE(write_atomically(posix_files(), path, text).ok());
    DataOptions options;
    options.train = {path};
    options.cache = bad_.path() + "/cache";
    const auto outcome = rows(options);
    const std::string message = outcome.ok() ? "no error" : outcome.status().message();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }

  ThreadPool pool_{2};
  TemporaryFolder bad_;
  std::unique_ptr<Reader> reader_;
};

TEST_F(TextReaders, splits_part_the_rows_of_the_data) {
  for (const DataOptions& options : {with_split(SplitKind::fraction), with_split(SplitKind::hash),
                                     by_time(csv_options()), by_time(log_options())}) {
    auto train = rows(options), eval = rows(options, Subset::eval),
         all = rows(options, Subset::all);
    ASSERT_TRUE(train.ok() && eval.ok() && all.ok());
    EXPECT_GT(train->size(), all->size() / 2);
    EXPECT_GT(eval->size(), all->size() / 10);
    train->insert(train->end(), eval->begin(), eval->end());
    std::sort(train->begin(), train->end());
    std::sort(all->begin(), all->end());
    EXPECT_EQ(*train, *all) << name_of(options.split.by);
  }
}

TEST_F(TextReaders, a_split_by_time_keeps_order_and_takes_the_last_share) {
  ColumnBatch batch;
  auto reader = open_reader(by_time(csv_options()), Subset::eval, 1, pool_, posix_files());
  ASSERT_TRUE((*reader)->read(0, 0, 1 << 20, batch).ok());
  ASSERT_EQ(batch.samples, 225);  // of 900
  EXPECT_EQ(batch.times.front(), 1000 + 675 / 3);
}

TEST_F(TextReaders, compressed_files_hold_the_same_rows) {
  const auto plain = rows(criteo_options());
  EXPECT_EQ(*rows(criteo_options("zip-*")), *plain);
  EXPECT_EQ(*rows(criteo_options("zst-*")), *plain);
}

TEST_F(TextReaders, skips_and_counts_bad_rows_up_to_the_limit) {
  DataOptions options = skipping();
  const auto kept = rows(options);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_EQ(kept->size(), 500u - 71);
  EXPECT_EQ(reader_->counts().bad_rows, 71);
  options.bad_row_limit = 70;
  EXPECT_THAT(rows(options).status().message(), HasSubstr("bad.tsv:494: column label: 'x'"));
}

TEST_F(TextReaders, name_file_and_line_of_bad_input) {
  const std::string good = criteo_text(1, 3);
  const std::string row = criteo_text(2, 1);
  EXPECT_THAT(error(good + "1\t2\n"), HasSubstr("data.tsv:4: has 2 columns instead of 40"));
  EXPECT_THAT(error(good + row.substr(0, row.size() / 2)), HasSubstr("data.tsv:4: "));
  EXPECT_THAT(error(good + "\n" + row + "1\t2\n"), HasSubstr("data.tsv:6: has 2 columns"))
      << "a blank line is none, and counts";
  EXPECT_THAT(error(good + row.substr(0, row.size() - 1) + "g\n"),
              HasSubstr("data.tsv:4: column C26"));
  EXPECT_THAT(error(good + row.substr(0, row.size() - 1) + "\xE2\x82"),
              HasSubstr("data.tsv:4: the row ends inside a UTF-8 character"));
  EXPECT_THAT(error(""), HasSubstr("data.tsv: is empty"));
  EXPECT_THAT(error(std::string(20 << 20, 'a')), HasSubstr("data.tsv:1: the row does not end"));
  EXPECT_EQ(error(good + row.substr(0, row.size() - 1)), "no error") << "no line end, but whole";
  DataOptions options;
  options.train = {bad_.path()};
  EXPECT_THAT(rows(options).status().message(), HasSubstr("is a folder, not a file"));
  options.train = {bad_.path() + "/none-*.tsv"};
  EXPECT_THAT(rows(options).status().message(), HasSubstr("none-*.tsv: matches no file"));
  options.train = {};
  EXPECT_THAT(rows(options).status().message(), HasSubstr("data.train: names no files"));
}

TEST_F(TextReaders, a_byte_order_mark_is_no_part_of_the_first_row) {
  DataOptions headless = csv_options();
  headless.train = {"headless.csv"};
  headless.header = false;
  auto& columns = headless.columns;  // in the order of the file
  std::swap(columns[0], columns[3]);
  std::swap(columns[1], columns[2]);
  std::swap(columns[2], columns[3]);
  const std::string csv = csv_text(900);
  const std::string quoted = "\"when\"" + csv.substr(csv.find(','));
  const std::string text = csv.substr(csv.find('\n') + 1);
  Files& files = posix_files();
  ASSERT_TRUE(write_atomically(files, folder() + "/headless.csv", text).ok());
  const std::pair<DataOptions, std::string> cases[] = {
      {criteo_options("part-0.tsv"), criteo_text(0, 300)},
      {csv_options(), csv},
      {csv_options(), quoted},
      {headless, text},
      {log_options(), behavior_text(700)}};
  for (auto [options, content] : cases) {
    const auto expected = rows(options);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    options.path = bad_.path();
    options.cache = bad_.path() + "/cache";
    for (const std::string suffix : {"", ".gz"}) {
      options.train = {"marked" + suffix};
      write_compressed(bad_.path() + "/" + options.train[0], "\xEF\xBB\xBF" + content);
      const auto marked = rows(options);
      ASSERT_TRUE(marked.ok()) << marked.status().message();
      EXPECT_EQ(*marked, *expected) << content.substr(0, 20);
    }
  }
  EXPECT_THAT(error("\xEF\xBB\xBF"), HasSubstr("data.tsv: has no rows"));
  EXPECT_THAT(error("\xEF\xBB\xBF" + criteo_text(1, 1) + "1\t2\n"), HasSubstr("data.tsv:2: has 2"));
}

TEST_F(TextReaders, a_file_from_the_future_is_a_warning_and_no_index_of_it_is_trusted) {
  const std::string path = bad_.path() + "/data.tsv";
  DataOptions options;
  options.train = {path};
  options.cache = bad_.path() + "/cache";
  for (const bool warned : {false, true}) {
    const std::string text = criteo_text(warned ? 1 : 2, 5);  // of different length
    ASSERT_TRUE(write_atomically(posix_files(), path, text).ok());
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() + std::chrono::hours(24));
    testing::internal::CaptureStderr();
    EXPECT_TRUE(rows(options).ok());
    const std::string line =
        "warning: " + path +
        ": its time of change lies in the future, so that no index of it is trusted and every run "
        "reads the whole file first; touch it\n";
    EXPECT_EQ(testing::internal::GetCapturedStderr(), warned ? "" : line);
  }
}

TEST_F(TextReaders, name_a_damaged_or_cut_compressed_file) {
  for (const char* name : {"zip-0.tsv.gz", "zst-0.tsv.zst"}) {
    const auto whole = read_text(posix_files(), folder() + "/" + name);
    ASSERT_TRUE(whole.ok());
    for (const size_t size : {whole->size() - 1, whole->size() / 2, size_t{1}}) {
      EXPECT_THAT(error(whole->substr(0, size), name),
                  HasSubstr(std::string(name) + ": ends in the middle of the compressed data"));
    }
    std::string damaged = *whole;
    damaged[damaged.size() / 2] ^= 0x10;
    EXPECT_NE(error(damaged, name), "no error") << name;
    EXPECT_THAT(error("1\t2\n", name), HasSubstr("damaged compressed data"));
    const auto once = rows(criteo_options(name));
    DataOptions options;
    options.train = {bad_.path() + "/" + name};
    options.cache = "";
    ASSERT_TRUE(write_atomically(posix_files(), options.train[0], *whole + *whole).ok());
    EXPECT_EQ(rows(options)->size(), 2 * once->size()) << "several members follow each other";
  }
}

TEST_F(TextReaders, a_damaged_or_stale_index_is_made_anew) {
  Files& files = posix_files();
  const std::string path = bad_.path() + "/data.tsv", cache = bad_.path() + "/cache";
  DataOptions options;
  options.train = {path};
  options.cache = cache;
  ASSERT_TRUE(write_atomically(files, path, criteo_text(1, 50)).ok());
  const auto expected = rows(options);
  ASSERT_TRUE(expected.ok());
  const std::string index = cache + "/" + files.list(cache)->at(0);
  const auto whole = read_text(files, index);
  for (size_t at = 0; at < whole->size(); at += 11) {
    std::string damaged = *whole;
    damaged[at] ^= 0x40;
    if (at % 2 == 0) damaged.resize(at);
    ASSERT_TRUE(write_atomically(files, index, damaged).ok());
    EXPECT_EQ(*rows(options), *expected) << at;
    EXPECT_EQ(*read_text(files, index), *whole);
  }
  ASSERT_TRUE(write_atomically(files, path, criteo_text(2, 60)).ok());
  EXPECT_EQ(rows(options)->size(), 60u);
  // Of the same size and time: a copy that keeps the time, as backups do.
  const auto time = std::filesystem::last_write_time(path);
  std::string longer = *read_text(files, path);
  longer.replace(longer.find('\n'), 1, "a");  // the first two rows are a bad one
  ASSERT_TRUE(write_atomically(files, path, longer).ok());
  std::filesystem::last_write_time(path, time);
  EXPECT_THAT(rows(options).status().message(), HasSubstr("data.tsv:1: has "));
  EXPECT_EQ(files.list(cache)->size(), 1u);
}

TEST_F(TextReaders, an_index_of_the_same_tick_as_its_file_is_not_trusted) {
  Files& files = posix_files();
  const std::string path = bad_.path() + "/data.tsv", cache = bad_.path() + "/cache";
  const auto tick = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  DataOptions options;
  options.train = {path};
  options.cache = cache;
  const std::string text = criteo_text(1, 2);
  const auto size_of_rows_with = [&](const std::string& content) {
    EXPECT_TRUE(write_atomically(files, path, content).ok());
    std::filesystem::last_write_time(path, tick);
    const auto found = rows(options);
    return found.ok() ? std::to_string(found->size()) : found.status().message();
  };
  ASSERT_EQ(size_of_rows_with(text + text), "4");
  const std::string index = cache + "/" + files.list(cache)->at(0);
  std::string one_row_less = text + text;
  one_row_less[text.size() - 1] = 'a';  // for the line end: of 3 rows, the middle one is bad
  std::filesystem::last_write_time(index, tick);
  EXPECT_THAT(size_of_rows_with(one_row_less), HasSubstr("data.tsv:2: has "));
}

TEST_F(TextReaders, ranks_that_open_the_same_file_at_once_make_one_index_and_later_ones_use_it) {
  const std::string path = bad_.path() + "/data.tsv";
  ASSERT_TRUE(write_atomically(posix_files(), path, criteo_text(1, 9000)).ok());
  change_long_ago(path);
  std::atomic<int> indexes = 0;
  SharedFiles files(posix_files(), [&](const std::string& changed) {
    indexes += changed.ends_with(".rows") ? 1 : 0;
    return Status();
  });
  DataOptions options;
  options.train = {path};
  options.cache = bad_.path() + "/cache";
  testing::internal::CaptureStderr();
  std::vector<std::thread> ranks(6);
  for (std::thread& rank : ranks) {
    rank = std::thread([&] {
      const auto reader = open_reader(options, Subset::train, 1, pool_, files);
      EXPECT_EQ(*(*reader)->rows(), 9000);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(indexes, 1);
}

TEST_F(TextReaders, a_full_disk_is_a_warning_for_an_index_and_leaves_nothing_of_it) {
  const std::string text = criteo_text(1, 5000);
  for (const int64_t room : {0, 10, 100}) {
    FaultyFiles files;
    ASSERT_TRUE(write_atomically(files, "data.tsv", text).ok());
    files.limit_bytes(room);
    DataOptions options;
    options.train = {"data.tsv"};
    options.cache = "cache";
    testing::internal::CaptureStderr();
    auto reader = open_reader(options, Subset::train, 1, pool_, files);
    ColumnBatch batch;
    const Status status = (*reader)->read(0, 4990, 20, batch);
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(batch.samples, 10);
    EXPECT_THAT(warning, HasSubstr("warning: no row index is kept: cache/"));
    EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
    EXPECT_TRUE(files.list("cache")->empty()) << room;
  }
}

TEST_F(TextReaders, columns_of_csv_are_checked_against_the_header) {
  DataOptions options = csv_options();
  options.columns[1].name = "z";
  EXPECT_THAT(rows(options).status().message(),
              HasSubstr("mixed.csv:1: data.columns: the header has no column 'z'"));
  options = csv_options();
  options.columns.erase(options.columns.begin());
  EXPECT_THAT(rows(options).status().message(), HasSubstr("no column has the role label"));
  options = csv_options();
  options.delimiter = "";
  EXPECT_THAT(rows(options).status().message(), HasSubstr("data.delimiter"));
}

TEST_F(TextReaders, keys_of_the_cache_tell_apart_what_shapes_the_rows) {
  DataOptions options = with_split(SplitKind::fraction, "long.tsv");
  options.cache = bad_.path() + "/cache";
  DataOptions plain = options;
  plain.cache = "";
  for (const double fraction : {0.11155111, 0.11155115, 0.5, 0.50000001}) {
    options.split.eval_fraction = plain.split.eval_fraction = fraction;
    EXPECT_EQ(*rows(options, Subset::eval), *rows(plain, Subset::eval)) << fraction;
  }
  EXPECT_EQ(posix_files().list(options.cache)->size(), 4u) << "an index for each fraction";
  std::set<std::string> prints;
  for (const std::vector<std::string>& missing :
       {std::vector<std::string>{"a;b"}, {"a", "b"}, {"a,b"}, {"ab"}, {"a", "b", ""}, {}}) {
    ColumnSpec spec;
    spec.missing = missing;
    for (const char* name : {"x", "x,dense"})
      prints.insert(fingerprint_of((spec.name = name, spec)));
  }
  EXPECT_EQ(prints.size(), 12u);
}

// A csv file of a label, a dense column, a sample weight and integer ids with weights.
class SmallCsv : public TextReaders {
 protected:
  SmallCsv() {
    options_.format = DataFormat::csv;
    options_.path = bad_.path();
    options_.train = {"a.csv"};
    options_.cache = bad_.path() + "/cache";
    options_.columns = {column("y", ColumnRole::label), column("d", ColumnRole::dense),
                        column("w", ColumnRole::sample_weight),
                        column("i", ColumnRole::id, IdText::integer)};
    options_.columns[3].list_separator = "|";
    options_.columns[3].weight_separator = ":";
  }
  void write(const std::string& name, const std::string& text) {
    const std::string path = bad_.path() + "/" + name;
    EXPECT_TRUE(write_atomically(posix_files(), path, text).ok());
  }
  // What both parsers make of a.csv, or the error.
  std::string read(const std::string& text) {
    write("a.csv", text);
    std::string outcomes[2];
    for (const ParserKind kind : {ParserKind::plain, ParserKind::fast}) {
      auto reader = open_reader(options_, Subset::all, 1, pool_, posix_files(), kind);
      const Status status = reader.ok() ? (*reader)->read(0, 0, 1 << 20, batch_) : reader.status();
      outcomes[kind == ParserKind::fast] = status.ok() ? "no error" : status.message();
    }
    EXPECT_EQ(outcomes[0], outcomes[1]);
    return outcomes[0];
  }

  DataOptions options_;
  ColumnBatch batch_;
};

TEST_F(SmallCsv, a_number_too_small_for_float32_is_zero_in_every_column) {
  ASSERT_EQ(read("y,d,w,i\n1e-60,1e-46,1e-300,4:1e-50|5:-1e-50\n1,-1e-46,1,\n"), "no error");
  EXPECT_EQ(batch_.labels[0], 0);
  EXPECT_EQ(batch_.sample_weights[0], 0);
  EXPECT_EQ(batch_.dense[0], (std::vector<float>{0, 0}));
  EXPECT_FALSE(std::signbit(batch_.dense[0][0]));
  EXPECT_TRUE(std::signbit(batch_.dense[0][1]));
  EXPECT_EQ(batch_.ids[0].weights, (std::vector<float>{0, 0}));
  EXPECT_TRUE(std::signbit(batch_.ids[0].weights[1]));
  EXPECT_THAT(read("y,d,w,i\n1,1e39,1,\n"), HasSubstr("a.csv:2: column d: '1e39' is not a finite"));
  EXPECT_THAT(read("y,d,w,i\n1,1,1,4:1e39\n"), HasSubstr("column i: '1e39' is not a finite"));
}

TEST_F(SmallCsv, labels_outside_0_to_1_and_negative_sample_weights_are_bad_rows) {
  const std::string good = "1,1,1,\n0.5,1,0,4:-2\n";
  std::string many;  // so that labels are parsed in groups
  for (int i = 0; i < 8; ++i) many += good;
  for (const char* label : {"5", "-3", "100", "1.0000001", "-1e-30", "-1"}) {
    EXPECT_THAT(read("y,d,w,i\n" + many + label + ",1,1,\n" + many),
                HasSubstr("a.csv:18: column y: "))
        << label;
    EXPECT_THAT(read("y,d,w,i\n" + many + label + ",1,1,\n" + many), HasSubstr("outside [0, 1]"));
  }
  for (const char* weight : {"-1", "-0.5", "-1e-20"}) {
    EXPECT_THAT(read("y,d,w,i\n" + many + "1,1," + weight + ",\n"),
                HasSubstr("a.csv:18: column w: a sample weight below 0"));
  }
  EXPECT_THAT(read("y,d,w,i\n1,1,inf,\n"), HasSubstr("a.csv:2: column w: 'inf' is not a finite"));
  EXPECT_THAT(read("y,d,w,i\n1,1,nan,\n"), HasSubstr("a.csv:2: column w: no value"));
  options_.on_bad_row = OnBadRow::skip;
  ASSERT_EQ(read("y,d,w,i\n" + good + "5,1,1,\n1,1,-2,\n" + good + "-0,1,-0,\n"), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1, 0.5f, 1, 0.5f, 0}));
}

TEST_F(SmallCsv, missing_names_numbers_by_value_and_items_that_equal_one_are_left_out) {
  options_.columns[1].missing = {"-999.5", "n/a"};
  options_.columns[3].missing = {"0", "12.0"};
  ASSERT_EQ(read("y,d,w,i\n1,-999.50,1,1:1|0:2|12:3|00:4|3:5\n0,-9995e-1,1,0:1\n1,n/a,1,120:1\n"),
            "no error");
  EXPECT_THAT(batch_.dense[0], testing::Each(testing::IsNan()));
  EXPECT_EQ(batch_.ids[0].ids, (std::vector<uint64_t>{1, 3, 120}));
  EXPECT_EQ(batch_.ids[0].weights, (std::vector<float>{1, 5, 1}));
  EXPECT_EQ(batch_.ids[0].offsets, (std::vector<int64_t>{0, 2, 2, 3}));
  options_.columns[3].id_text = IdText::text;
  ASSERT_EQ(read("y,d,w,i\n1,1,1,00:1|0:2\n"), "no error");
  EXPECT_EQ(batch_.ids[0].ids, (std::vector<uint64_t>{hash_bytes("00")})) << "text by its bytes";
  options_.columns[0].missing = {"0"};
  EXPECT_THAT(read("y,d,w,i\n0.0,1,1,\n"), HasSubstr("a.csv:2: column y: no value"));
  options_.columns[0].missing = {};
  options_.columns[2].missing = {"-1"};
  EXPECT_THAT(read("y,d,w,i\n0,1,-1.0,\n"), HasSubstr("a.csv:2: column w: no value"));
}

TEST_F(SmallCsv, lists_may_be_split_at_several_characters) {
  options_.columns[3].list_separator = ", ";
  options_.delimiter = ";";
  ASSERT_EQ(read("y;d;w;i\n1;1;1;5:1, 6:2\n0;1;1;7:1\n1;1;1;\n"), "no error");
  EXPECT_EQ(batch_.ids[0].ids, (std::vector<uint64_t>{5, 6, 7}));
  EXPECT_EQ(batch_.ids[0].offsets, (std::vector<int64_t>{0, 2, 3, 3}));
  options_.columns[3].list_separator = std::string(17, '|');
  EXPECT_THAT(read("y;d;w;i\n"), HasSubstr("data.columns: list_separator is one to 16 characters"));
}

TEST_F(SmallCsv, files_without_rows_are_no_error_where_others_have_some) {
  options_.train = {"none.csv", "a.csv", "header.csv", "mark.csv", "b.csv"};
  write("none.csv", "");
  write("header.csv", "y,d,w,i\n");
  write("mark.csv", "\xEF\xBB\xBF");
  write("b.csv", "y,d,w,i\n0,2,1,\n");
  ASSERT_EQ(read("y,d,w,i\n1,1,1,\n"), "no error");
  EXPECT_EQ(batch_.dense[0], (std::vector<float>{1, 2}));
  ASSERT_EQ(read("y,d,w,i\n1,3,1,\n"), "no error") << "the same by the cache";
  options_.train = {"header.csv", "none.csv"};
  EXPECT_THAT(read(""), HasSubstr("header.csv: has no rows, and no other file has any"));
  options_.train = {"none.csv", "mark.csv"};
  EXPECT_THAT(read(""), HasSubstr("none.csv: is empty"));
  options_.header = false;
  options_.train = {"none.csv", "a.csv"};
  ASSERT_EQ(read("1,1,1,\n"), "no error");
  EXPECT_EQ(batch_.samples, 1);
}

TEST_F(TextReaders, zeros_behind_the_last_gzip_member_are_padding) {
  const auto whole = read_text(posix_files(), folder() + "/zip-0.tsv.gz");
  const auto expected = rows(criteo_options("zip-0.tsv.gz"));
  DataOptions options;
  options.train = {bad_.path() + "/padded.tsv.gz"};
  options.cache = bad_.path() + "/cache";
  for (const size_t zeros : {1, 511, 1 << 20}) {
    ASSERT_TRUE(
        write_atomically(posix_files(), options.train[0], *whole + std::string(zeros, 0)).ok());
    EXPECT_EQ(*rows(options), *expected) << zeros;
  }
  EXPECT_THAT(error(*whole + std::string(9, 0) + std::string(20, 'x'), "zip-0.tsv.gz"),
              HasSubstr("damaged"));
  EXPECT_THAT(error(std::string(100, 0), "zip-0.tsv.gz"), HasSubstr("damaged"));
}

TEST_F(SmallCsv, blank_lines_are_no_rows_and_errors_count_them) {
  const std::string text = "\n \r\ny,d,w,i\n\n1,1,1,\n   \n\t\n0,2,1,\r\n\r\n\n0,3,1,5:1\n\n ";
  ASSERT_EQ(read(text), "no error");
  EXPECT_EQ(batch_.dense[0], (std::vector<float>{1, 2, 3}));
  EXPECT_THAT(read(text + "\n\nx,1,1,\n"), HasSubstr("a.csv:15: column y: 'x'"));
  options_.on_bad_row = OnBadRow::skip;
  ASSERT_EQ(read(text + "\nx,1,1,\n\n1,4,1,\n"), "no error");
  EXPECT_EQ(batch_.dense[0], (std::vector<float>{1, 2, 3, 4}));
  options_.bad_row_limit = 0;
  EXPECT_THAT(read(text + "\n\nx,1,1,\n"), HasSubstr("a.csv:15: column y: 'x'"));
  options_.bad_row_limit = 10;
  // Over chunks of a scan, blocks of an index and windows, and with a quote.
  std::string many = "y,d,w,i\n";
  std::vector<float> expected;
  for (int row = 0; row < 9000; ++row) {
    many += std::string(row % 4, '\n') + (row % 7 == 0 ? "  \n" : "");
    many += "1," + std::to_string(row) + ",1,\n";
    expected.push_back(static_cast<float>(row));
  }
  for (const std::string& end :
       {std::string(), std::string(9 << 20, '\n'), std::string("\"1\",9000,1,\n")}) {
    if (end.starts_with('"')) expected.push_back(9000);
    ASSERT_EQ(read(many + end), "no error");
    EXPECT_EQ(batch_.dense[0], expected);
  }
  EXPECT_THAT(read("\n \n"), HasSubstr("a.csv: is empty"));
}

TEST_F(SmallCsv, headers_may_list_the_columns_in_another_order_in_each_file) {
  options_.train = {"a.csv", "b.csv", "c.csv"};
  options_.shuffle = {ShuffleKind::window, 6};
  options_.columns.push_back(column("t", ColumnRole::time));
  options_.columns.push_back(column("j", ColumnRole::id));
  std::string texts[3] = {"y,d,w,i,t,j\n", "j,extra,t,i,w,y,d\n", "t,w,i,j,d,y\n"};
  std::string same = texts[0];
  for (int row = 0; row < 40; ++row) {
    const std::string n = std::to_string(row), i = n + ":2|7:1", y = std::to_string(row % 2);
    const std::string in_order = y + "," + n + ",1," + i + "," + n + ",w" + n + "\n";
    same += in_order;
    texts[row % 3] += row % 3 == 0   ? in_order
                      : row % 3 == 1 ? "w" + n + ",e," + n + "," + i + ",1," + y + "," + n + "\n"
                                     : n + ",1," + i + ",w" + n + "," + n + "," + y + "\n";
  }
  write("same.csv", same);
  write("b.csv", texts[1]);
  write("c.csv", texts[2]);
  for (const SplitKind by : {SplitKind::file, SplitKind::time, SplitKind::hash}) {
    options_.split.by = by;
    options_.split.eval_fraction = 0.25;
    options_.split.column = "j";
    for (const Subset subset : {Subset::train, Subset::all}) {
      write("a.csv", texts[0]);
      DataOptions one = options_;
      one.train = {"same.csv"};
      auto expected = rows(one, subset), found = rows(options_, subset);
      ASSERT_TRUE(expected.ok() && found.ok()) << found.status().message();
      std::ranges::sort(*expected);
      std::ranges::sort(*found);
      EXPECT_EQ(*found, *expected) << name_of(by);
    }
  }
  write("c.csv", "t,w,i,j,d\n");
  EXPECT_THAT(rows(options_).status().message(),
              HasSubstr("c.csv:1: data.columns: the header has no column 'y'"));
  options_.train = {"a.csv"};
  EXPECT_THAT(read("y,d,w,i,t,j,y\n1,1,1,,,,0\n"),
              HasSubstr("a.csv:1: data.columns: the header has 'y' twice"));
  EXPECT_EQ(read("y,d,w,i,t,j,z,z\n1,1,1,,7,,0,1\n"), "no error") << "what is not read may";
}

TEST_F(SmallCsv, numbers_ids_and_times_are_taken_as_they_come) {
  options_.columns.push_back(column("t", ColumnRole::time));
  options_.columns.push_back(column("j", ColumnRole::id));
  ASSERT_EQ(read("y,d,w,i,t,j\n"
                 "True, 1.5 ,+1,7.0:1| 8 :+2|nan:3,2014-10-21T09:30:00+02:00, 7.0\n"
                 "False,nan,1.0,,2014-10-21,7\n"
                 "+1,TRUE,1,,1413849600.0,7.0\n"),
            "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1, 0, 1}));
  EXPECT_THAT(batch_.dense[0], testing::ElementsAre(1.5f, testing::IsNan(), 1.0f));
  EXPECT_EQ(batch_.ids[0].ids, (std::vector<uint64_t>{7, 8}));
  EXPECT_EQ(batch_.ids[0].weights, (std::vector<float>{1, 2}));
  EXPECT_EQ(batch_.times, (std::vector<int64_t>{1413849600 + 27000, 1413849600, 1413849600}));
  EXPECT_EQ(batch_.ids[1].ids,
            (std::vector<uint64_t>{hash_bytes(" 7.0"), hash_bytes("7"), hash_bytes("7.0")}));
  EXPECT_THAT(read("y,d,w,i,t,j\n1,1,1,,2014-13-01,x\n"),
              HasSubstr("a.csv:2: column t: '2014-13-01' is not a time"));
}

TEST_F(SmallCsv, a_delimiter_may_have_several_characters) {
  options_.delimiter = "::";
  options_.columns[3].weight_separator = "";
  ASSERT_EQ(read("y::d::w::i\n1::2::1::3|4\n0::5::1::\"6\"\n"), "no error");
  EXPECT_EQ(batch_.dense[0], (std::vector<float>{2, 5}));
  EXPECT_EQ(batch_.ids[0].ids, (std::vector<uint64_t>{3, 4, 6}));
  options_.split.by = SplitKind::hash;
  options_.split.column = "d";
  options_.split.eval_fraction = 0;
  EXPECT_EQ(rows(options_)->size(), 2u) << "the split finds its cell too";
  options_.delimiter = ":\n";
  EXPECT_THAT(read("y\n"), HasSubstr("data.delimiter: must differ from"));
  options_.delimiter = std::string(17, ':');
  EXPECT_THAT(read("y\n"), HasSubstr("data.delimiter: must be one to 16 characters"));
}

std::string bzip2(std::string text) {
  auto size = static_cast<unsigned>(text.size() + text.size() / 100 + 600);
  std::string compressed(size, '\0');
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(compressed.data(), &size, text.data(),
                                     static_cast<unsigned>(text.size()), 1, 0, 0),
            BZ_OK);
  compressed.resize(size);
  return compressed;
}

TEST_F(TextReaders, bzip2_and_endings_in_upper_case_are_read) {
  const std::string first = criteo_text(1, 300), second = criteo_text(2, 500);
  const std::string streams = bzip2(first) + bzip2(second);
  DataOptions options;
  options.path = bad_.path();
  options.cache = bad_.path() + "/cache";
  options.train = {"plain.tsv"};
  ASSERT_TRUE(write_atomically(posix_files(), bad_.path() + "/plain.tsv", first + second).ok());
  const auto expected = rows(options);
  ASSERT_EQ(expected->size(), 800u);
  write_compressed(bad_.path() + "/PART.TSV.GZ", first + second);
  write_compressed(bad_.path() + "/Part.Tsv.Zst", first + second);
  const auto packed = read_text(posix_files(), bad_.path() + "/PART.TSV.GZ");
  EXPECT_LT(packed->size(), first.size() + second.size())
      << "what is written goes by its ending too";
  for (const char* name : {"part.tsv.bz2", "part.tsv.BZ2", "PART.TSV.GZ", "Part.Tsv.Zst"}) {
    options.train = {name};
    if (std::string(name).starts_with("part")) {
      ASSERT_TRUE(write_atomically(posix_files(), bad_.path() + "/" + name, streams).ok());
    }
    EXPECT_EQ(*rows(options), *expected) << name;
    options.shuffle = {ShuffleKind::window, 100};
    EXPECT_EQ(rows(options)->size(), 800u) << name;
    options.shuffle = {};
  }
  EXPECT_EQ(error(bzip2(criteo_text(1, 3)) + std::string(700, '\0'), "a.bz2"), "no error");
  EXPECT_THAT(error(streams.substr(0, streams.size() - 1), "a.bz2"),
              HasSubstr("a.bz2: ends in the middle of the compressed data"));
  EXPECT_THAT(error("1\t2\n", "a.bz2"), HasSubstr("damaged compressed data"));
  EXPECT_THAT(error(std::string(100, '\0'), "a.bz2"), HasSubstr("damaged compressed data"));
  std::string damaged = streams;
  damaged[damaged.size() / 2] ^= 0x10;
  EXPECT_THAT(error(damaged, "a.bz2"), HasSubstr("damaged compressed data"));
  EXPECT_THAT(error("", "a.bz2"), HasSubstr("a.bz2: is empty"));
}

TEST_F(SmallCsv, labels_become_0_and_1_by_a_rule) {
  options_.label.threshold = 4;
  std::string ratings = "y,d,w,i\n";
  std::vector<float> expected;
  for (int i = 0; i < 40; ++i) {
    ratings += std::to_string(1 + i % 5) + (i > 20 ? ".0" : "") + ",1,1,\n";
    expected.push_back(i % 5 >= 3 ? 1 : 0);
  }
  ASSERT_EQ(read(ratings), "no error");
  EXPECT_EQ(batch_.labels, expected);
  EXPECT_THAT(read(ratings + "nan,1,1,\n"), HasSubstr("a.csv:42: column y: no value"));
  EXPECT_THAT(read(ratings + "good,1,1,\n"), HasSubstr("column y: 'good' is not a finite number"));
  options_.label.threshold = 0.7;
  ASSERT_EQ(read("y,d,w,i\n0.7,1,1,\n0.69999,1,1,\n-1,1,1,\n"), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1, 0, 0})) << "as float32, both";
  options_.label.positive = {"4", "yes"};
  EXPECT_THAT(read(ratings), HasSubstr("data.label: threshold and positive both say"));
  options_.label.threshold.reset();
  ASSERT_EQ(read("y,d,w,i\n4.0,1,1,\nyes,1,1,\nYes,1,1,\n-1,1,1,\n5,1,1,\n+4,1,1,\nno,1,1,\n"),
            "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1, 1, 0, 0, 0, 1, 0}));
  EXPECT_THAT(read("y,d,w,i\n,1,1,\n"), HasSubstr("a.csv:2: column y: no value"));
  options_.label.positive = {"1"};
  ASSERT_EQ(read("y,d,w,i\n-1,1,1,\n1,1,1,\n"), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{0, 1}));
  options_.on_bad_row = OnBadRow::skip;
  ASSERT_EQ(read("y,d,w,i\n-1,1,1,\n1,1,1,\n"), "no error");
  options_.label = {};
  ASSERT_EQ(read("y,d,w,i\n-1,1,1,\n1,1,1,\n"), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1})) << "the rule is part of the index's key";
}

TEST_F(SmallCsv, hour_and_weekday_are_columns_of_a_time) {
  options_.columns.push_back(column("t", ColumnRole::time));
  ColumnSpec hour = column("hour", ColumnRole::id), day = column("day", ColumnRole::dense);
  hour.from = day.from = "t";
  hour.part = TimePart::hour;
  day.part = TimePart::weekday;
  options_.columns.insert(options_.columns.begin(), {hour, day});
  ASSERT_EQ(read("y,d,w,i,t\n1,1,1,5:1,2014-10-21T23:59:59\n0,2,1,,2014-10-26T00:00\n"
                 "0,3,1,,-1\n0,4,1,,0\n1,5,1,,-9223372036854775808\n"),
            "no error");
  auto reader = open_reader(options_, Subset::all, 1, pool_, posix_files());
  EXPECT_EQ((*reader)->schema().ids, (std::vector<std::string>{"i", "hour"}));
  EXPECT_EQ((*reader)->schema().dense, (std::vector<std::string>{"d", "day"}));
  EXPECT_EQ((*reader)->key_source().files.size(), 1u) << "as the reader of the files says";
  EXPECT_EQ(batch_.ids[1].ids, (std::vector<uint64_t>{23, 0, 23, 0, 8}));
  EXPECT_EQ(batch_.ids[1].offsets, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(batch_.dense[1], (std::vector<float>{1, 6, 2, 3, 6})) << "0 is Monday";
  options_.columns[0].from = "d";
  EXPECT_THAT(read(""),
              HasSubstr("column 'hour' is derived from 'd', which is not a column of role"));
  options_.columns[0].from = "";
  EXPECT_THAT(read(""), HasSubstr("column 'hour' has a part, but no from"));
  options_.columns[0] = hour;
  options_.columns[0].part = TimePart::none;
  EXPECT_THAT(read(""), HasSubstr("column 'hour' has from, but no part: hour or weekday"));
  options_.columns[0] = hour;
  options_.columns[0].role = ColumnRole::group;
  EXPECT_THAT(read(""), HasSubstr("its role must be dense or id"));
  options_.columns[0] = hour;
  options_.columns[0].name = "i";
  EXPECT_THAT(read(""), HasSubstr("listed twice: i"));
  options_.columns[0] = hour;
  options_.format = DataFormat::libsvm;
  EXPECT_THAT(read("1 1:1\n"),
              HasSubstr("'hour' is derived from a time, and the data has no time"));
  options_.format = DataFormat::behavior_log;
  options_.columns[0].name = "item";
  EXPECT_THAT(read("1,2,3,pv,4\n"), HasSubstr("'item' is derived, and the data has a column of"));
}

class Libsvm : public SmallCsv {
 protected:
  Libsvm() {
    options_.format = DataFormat::libsvm;
    options_.columns.clear();
  }
};

TEST_F(Libsvm, rows_are_a_label_and_a_bag_of_indexes_with_values) {
  ASSERT_EQ(read("1 3:0.5 7:1e-50  12:-2 \n\n0\n +1\t5 6:1 # a comment\r\n"), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(batch_.ids[0].ids, (std::vector<uint64_t>{3, 7, 12, 5, 6}));
  EXPECT_EQ(batch_.ids[0].weights, (std::vector<float>{0.5f, 0, -2, 1, 1}));
  EXPECT_EQ(batch_.ids[0].offsets, (std::vector<int64_t>{0, 3, 3, 5}));
  EXPECT_THAT(read("1 1:1\n-1 2:1\n"), HasSubstr("a.csv:2: label: -1 is not a label"));
  options_.label.threshold = 0;
  ASSERT_EQ(read("+1 1:1\n-1 2:1\n"), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1, 0}));
  EXPECT_THAT(read("1 1:1\n1 x:1\n"), HasSubstr("a.csv:2: 'x' is not an integer id"));
  EXPECT_THAT(read("1 1:1\n1 1:\n"), HasSubstr("a.csv:2: '' is not a finite number"));
  ASSERT_EQ(read("# of a file\n\n# of a row\n+1 1:1\n  # of none\n-1 2:1\n# 5"), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<float>{1, 0}));
  EXPECT_THAT(read("1 1:1\n# 5\n1 x:1\n"), HasSubstr("a.csv:3: 'x' is not an integer id"));
  options_.on_bad_row = OnBadRow::skip;
  options_.split.by = SplitKind::fraction;
  write("a.csv", "1 1:1\nx\n0 2:1\n1 3:1\n");
  options_.split.eval_fraction = 0;
  EXPECT_EQ(rows(options_)->size(), 3u);
  options_.split.by = SplitKind::time;
  EXPECT_THAT(rows(options_).status().message(), HasSubstr("time needs a column of role time"));
}

TEST_F(Libsvm, rows_of_libffm_have_a_bag_for_each_field) {
  options_.libsvm.fields = 3;
  ASSERT_EQ(read("1 0:11:1 2:12:0.5 0:13:2\n0 1:14:1\n"), "no error");
  ASSERT_EQ(batch_.ids.size(), 3u);
  EXPECT_EQ(batch_.ids[0].ids, (std::vector<uint64_t>{11, 13}));
  EXPECT_EQ(batch_.ids[0].weights, (std::vector<float>{1, 2}));
  EXPECT_EQ(batch_.ids[1].ids, (std::vector<uint64_t>{14}));
  EXPECT_EQ(batch_.ids[2].weights, (std::vector<float>{0.5f}));
  EXPECT_EQ(batch_.ids[2].offsets, (std::vector<int64_t>{0, 1, 1}));
  EXPECT_THAT(read("1 3:1:1\n"), HasSubstr("a.csv:1: '3:1:1' is not of a field below data.libsvm"));
  EXPECT_THAT(read("1 5\n"), HasSubstr("a.csv:1: '5' is not field:index:value"));
}

}  // namespace
}  // namespace recmill::reader
