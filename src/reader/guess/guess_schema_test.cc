// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/guess_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "reader/open_reader.h"

namespace recmill::reader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Files of one test.
class GuessSchema : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + "/" + name;
    EXPECT_TRUE(write_atomically(posix_files(), path, text).ok());
    return path;
  }
  SchemaGuess guess(const std::string& path, const std::string& label = "") {
    auto found = guess_schema(posix_files(), path, label);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? *found : SchemaGuess();
  }
  SchemaGuess guess_text(const std::string& text, const std::string& label = "") {
    return guess(write("rows.csv", text), label);
  }
  std::string refusal(const std::string& path, const std::string& label = "") {
    const Status status = guess_schema(posix_files(), path, label).status();
    EXPECT_EQ(std::count(status.message().begin(), status.message().end(), '\n'), 0);
    return status.message();
  }
  /// Below `most`, the n-th of a sequence that is the same every time.
  static int64_t draw(int64_t n, int64_t most, uint64_t purpose = 0) {
    return static_cast<int64_t>(Random(1, Purpose::test, purpose).bits(static_cast<uint64_t>(n)) %
                                static_cast<uint64_t>(most));
  }

  const TemporaryFolder folder_;
};

const ColumnGuess& column_of(const SchemaGuess& guess, const std::string& name) {
  for (const ColumnGuess& column : guess.columns) {
    if (column.spec.name == name) return column;
  }
  ADD_FAILURE() << "no column " << name;
  static const ColumnGuess none;
  return none;
}
ColumnRole role_of(const SchemaGuess& guess, const std::string& name) {
  return column_of(guess, name).spec.role;
}

TEST_F(GuessSchema, finds_roles_types_and_sizes_of_a_csv_file_with_a_header) {
  std::string text = "id;click;when;price;site;code\n";
  for (int i = 0; i < 400; ++i) {
    text += std::to_string(i) + ";" + std::to_string(i % 2) + ";" +
            std::to_string(1511544070 + 60 * i) + ";" + std::to_string(i % 90) + ".5;\"shop " +
            std::to_string(i % 7) + "\";" + std::to_string(1000 + i * 37 % 89) + "\n";
  }
  write("clicks.csv", text);
  const SchemaGuess found = guess(folder_.path());
  EXPECT_EQ(found.options.format, DataFormat::csv);
  EXPECT_EQ(found.options.delimiter, ";");
  EXPECT_TRUE(found.options.header);
  EXPECT_EQ(role_of(found, "id"), ColumnRole::ignore);
  EXPECT_EQ(role_of(found, "click"), ColumnRole::label);
  EXPECT_EQ(role_of(found, "when"), ColumnRole::time);
  EXPECT_EQ(role_of(found, "price"), ColumnRole::dense);
  EXPECT_EQ(role_of(found, "site"), ColumnRole::id);
  EXPECT_EQ(role_of(found, "code"), ColumnRole::id);
  ASSERT_EQ(found.tables.size(), 2u);
  EXPECT_EQ(found.tables[0].distinct, 7);
  EXPECT_EQ(found.tables[0].rows, 9);  // all are known: one for unseen, one for missing ones
  EXPECT_EQ(found.tables[1].distinct, 89);
  EXPECT_THAT(found.toml, HasSubstr("[[tables]]  # 7 distinct ids in the sample\nname = \"site\""));
  EXPECT_EQ(found.sampled_rows, 400);
  EXPECT_TRUE(found.whole);
}

TEST_F(GuessSchema, what_it_guesses_reads_the_samples_of_real_data) {
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
    SchemaGuess found = guess(path);
    EXPECT_EQ(found.options.format, format) << name;
    found.options.cache = "";
    ThreadPool pool(2);
    auto reader = open_reader(found.options, Subset::train, 1, pool, posix_files());
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    ColumnBatch batch;
    const Status status = (*reader)->read(0, 0, 5000, batch);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(batch.samples, 5000);
    for (const TableGuess& table : found.tables) EXPECT_GE(table.rows, table.distinct) << name;
  }
}

TEST_F(GuessSchema, a_folder_is_all_of_its_files_and_the_sample_is_of_all) {
  for (int part = 0; part < 6; ++part) {
    std::string text = "click,site\n";
    for (int i = 0; i < 100; ++i) {
      text += std::to_string(i % 2) + ",s" + std::to_string(100 * part + i / 2) + "\n";
    }
    write("part-" + std::to_string(part) + ".csv", text);
  }
  write("_SUCCESS", "");
  const SchemaGuess all = guess(folder_.path());
  EXPECT_EQ(all.options.path, folder_.path());
  EXPECT_THAT(all.options.train, ElementsAre("*.csv"));
  EXPECT_EQ(all.sampled_rows, 600);
  ASSERT_EQ(all.tables.size(), 1u);
  EXPECT_EQ(all.tables[0].distinct, 300);
  const SchemaGuess some = guess(folder_.path() + "/part-[0-2].csv");
  EXPECT_THAT(some.options.train, ElementsAre("part-[0-2].csv"));
  EXPECT_EQ(some.options.path, folder_.path());
  EXPECT_EQ(some.sampled_rows, 300);
  SchemaGuess read = all;
  read.options.cache = "";
  ThreadPool pool(1);
  const auto reader = open_reader(read.options, Subset::all, 1, pool, posix_files());
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ(*(*reader)->rows(), 600);
}

TEST_F(GuessSchema, a_file_of_another_header_or_format_is_refused_by_name) {
  write("a.csv", "click,site\n0,a\n1,b\n");
  write("b.csv", "click,shop\n0,a\n1,b\n");
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("/b.csv: its first line is not the header of " +
                                                 folder_.path() + "/a.csv"));
  write("b.csv", "click,site,price\n0,a,1\n");
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("/b.csv: its first line is not the header"));
  write("b.csv", "PAR1\x01\x02");
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("/b.csv: is of another format than "));
  write("a.csv", "1,2,3\n4,5,6\n");
  write("b.csv", "1,2\n4,5\n");
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("/b.csv: its first line has 2 cells"));
}

TEST_F(GuessSchema, headers_may_differ_in_order_and_files_may_be_without_rows) {
  write("a.csv", "");
  write("b.csv", "site,click\n");
  write("c.csv", "click,site\n0,a\n1,b\n1,a\n");
  write("d.csv", "site,click\nb,0\na,1\nb,0\n");
  const SchemaGuess found = guess(folder_.path());
  EXPECT_EQ(found.sampled_rows, 6);
  EXPECT_EQ(role_of(found, "click"), ColumnRole::label);
  EXPECT_EQ(role_of(found, "site"), ColumnRole::id);
  ASSERT_EQ(found.tables.size(), 1u);
  EXPECT_EQ(found.tables[0].distinct, 2);
}

TEST_F(GuessSchema, reads_json_lines) {
  std::string text;
  for (int64_t i = 0; i < 400; ++i) {
    text += "{\"click\": " + std::string(draw(i, 2) != 0 ? "true" : "false") +
            ", \"user\": {\"id\": " + std::to_string(draw(i, 50, 1)) +
            ", \"age\": " + std::to_string(static_cast<double>(draw(i, 900, 2)) / 8 + 0.0625) +
            "}, \"tags\": [\"t" + std::to_string(draw(i, 9, 3)) + "\", \"u\"], \"bag\": {\"" +
            std::to_string(draw(i, 70, 4)) + "\": 0.5}" +
            (i % 3 == 0 ? R"(, "site": "a\"b)" + std::to_string(i % 7) + "\"" : "") +
            ", \"odd\": [[1]]}\n";
  }
  const SchemaGuess found = guess(write("rows.jsonl", text));
  EXPECT_EQ(found.options.format, DataFormat::json_lines);
  EXPECT_EQ(found.sampled_rows, 400);
  EXPECT_EQ(role_of(found, "click"), ColumnRole::label);
  EXPECT_EQ(role_of(found, "user.age"), ColumnRole::dense);
  EXPECT_EQ(column_of(found, "user.id").spec.id_text, IdText::integer);
  EXPECT_EQ(column_of(found, "tags").spec.id_text, IdText::text);
  EXPECT_EQ(role_of(found, "bag"), ColumnRole::id);
  EXPECT_EQ(role_of(found, "site"), ColumnRole::id);
  EXPECT_FALSE(column_of(found, "odd").kept);
  EXPECT_THAT(found.toml, Not(HasSubstr("header = ")));
  std::vector<std::pair<std::string, std::string>> poolings;
  for (const FeatureGuess& feature : found.training.features) {
    poolings.emplace_back(feature.name, feature.pooling);
  }
  EXPECT_THAT(poolings,
              ::testing::IsSupersetOf({std::pair<std::string, std::string>("tags", "sum"),
                                       std::pair<std::string, std::string>("bag", "sum")}));
  DataOptions read = found.options;
  read.cache = "";
  ThreadPool pool(1);
  const auto reader = open_reader(read, Subset::all, 1, pool, posix_files());
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ColumnBatch batch;
  const Status status = (*reader)->read(0, 0, 400, batch);
  EXPECT_TRUE(status.ok()) << status.message();
  std::string wide;  // keys of its own in every row: the sample is bounded by its cells
  for (int i = 0; i < 20000; ++i) {
    wide += "{\"click\": " + std::to_string(i % 2) + ", \"k" + std::to_string(i) + "\": \"a\"}\n";
  }
  const SchemaGuess bounded = guess(write("wide.jsonl", wide));
  EXPECT_EQ(bounded.sampled_rows, 6000000 / 20001);
  EXPECT_FALSE(bounded.whole);
  EXPECT_THAT(refusal(write("pretty.json", "{\n  \"a\": 1\n}\n")),
              HasSubstr("pretty.json:1: is not a JSON object with columns"));
}

TEST_F(GuessSchema, what_is_no_table_of_text_is_refused_by_what_it_is) {
  using std::string_literals::operator""s;
  const std::pair<std::string, const char*> cases[] = {
      {"PK\x03\x04\x14\0\0"s, "a zip archive (or an Excel, .npz or Keras file)"},
      {"\x93NUMPY\x01\0"s, "a NumPy array"},
      {"\x80\x04\x95\x10\0"s, "a Python pickle"},
      {"\x89HDF\r\n\x1A\n"s, "an HDF5 file"},
      {"SQLite format 3\0"s, "an SQLite database"},
      {"FEA1\0\0\0\0"s, "a Feather file of version 1"},
      {"Obj\x01\x04\x14"s, "an Avro file"},
      {"\xFF\xFE\x31\0"s, "text of UTF-16"},
      {"\x1F\x8B\x08\0"s, "compressed with gzip, which is not read; let its name end in .gz"},
      {"[{\"a\": 1}]"s, "a JSON array"},
      {"1 0:3:0.5 1:7:1 2:12:0.25\n0 0:2:1 1:4:1\n"s, "rows of libffm"},
      {"<?xml version='1.0'?>\n<rows/>\n"s, "is XML"},
      {"@relation r\n@attribute a numeric\n@data\n1\n"s, "an ARFF file"},
      {"y,a\r1,2\r0,3\r"s, "a carriage return alone"},
      {"\x01\x02\0\x03"s, "is neither text nor a format that is read"}};
  for (const auto& [bytes, what] : cases) {
    const std::string path = write("data.bin", bytes);
    EXPECT_THAT(refusal(path), HasSubstr(path + ": is ")) << what;
    EXPECT_THAT(refusal(path), HasSubstr(what));
  }
  EXPECT_EQ(guess_text("ORCID,click\n7,0\n8,1\n").sampled_rows, 2);  // letters alone are a text
}

TEST_F(GuessSchema, names_what_looks_like_text_of_columns) {
  const auto refused = [&](const std::string& text) { return refusal(write("rows.txt", text)); };
  EXPECT_THAT(refused("1 qid:3 1:0.5 2:1\n0 qid:3 1:1 2:4\n"),
              HasSubstr("libsvm with groups (qid)"));
  EXPECT_THAT(refused("1 |a c5 |b x:1\n0 |a c6 |b x:2\n"), HasSubstr("Vowpal Wabbit"));
  EXPECT_THAT(refused(R"({"y":{"0":1,"1":0,"2":1},"x":{"0":2.5,"1":3,"2":4}})"),
              HasSubstr("a JSON object of columns"));
  EXPECT_THAT(refused("# made by hand\ny,a\n1,2\n0,3\n"),
              HasSubstr("rows.txt:1: begins with a comment"));
  EXPECT_THAT(refused("y,a,b\n"), HasSubstr("has no rows"));
  EXPECT_EQ(guess(write("c.txt", "1 5:1 40:0.3 # c\n0 7:1\n")).options.format, DataFormat::libsvm);
}

TEST_F(GuessSchema, integers_that_measure_are_dense_and_integers_that_name_are_ids) {
  // Neutral names: a bell, counts that fall off, amounts that are mostly 0; codes, ids of each
  // sample, ids with gaps.
  std::string text = "y,a,b,c,d,e,f\n";
  for (int i = 0; i < 4000; ++i) {
    const int64_t bell = 17 + draw(i, 25, 1) + draw(i, 25, 2) + draw(i, 20, 3);
    const int64_t count = draw(i, 1 + draw(i, 300, 4), 5) / (1 + draw(i, 6, 6));
    const int64_t amount = draw(i, 10, 7) < 9 ? 0 : 1000 + 7 * draw(i, 900, 8);
    const int64_t code = 1000 + 37 * draw(i, 40, 9) % 1009, item = draw(i, 300, 10);
    const int64_t label = draw(i, 80, 11) < bell / 2 + 40 * ((item * 7919 % 13) < 5);
    text += std::to_string(label) + "," + std::to_string(bell) + "," + std::to_string(count) + "," +
            std::to_string(amount) + "," + std::to_string(code) + "," + std::to_string(item) + "," +
            std::to_string(code % 7 * 110) + "\n";
  }
  const SchemaGuess found = guess_text(text);
  for (const char* dense : {"a", "b", "c"}) {
    EXPECT_EQ(role_of(found, dense), ColumnRole::dense) << dense << column_of(found, dense).why;
  }
  for (const char* id : {"d", "e", "f"}) {
    EXPECT_EQ(role_of(found, id), ColumnRole::id) << id << column_of(found, id).why;
  }
}

TEST_F(GuessSchema, names_and_leaves_out_leaks_constants_keys_and_the_index_of_pandas) {
  std::string text = ",order,click,site,paid,price,country,empty\n";
  for (int i = 0; i < 300; ++i) {
    const bool click = draw(i, 4) == 0;
    text += std::to_string(i) + ",o" + std::to_string(i * 7919) + "," + (click ? "1" : "0") + ",s" +
            std::to_string(draw(i, 9, 1)) + "," + (click ? std::to_string(i % 50) : "") + "," +
            std::to_string(draw(i, 100, 2)) + ".25,nl,\n";
  }
  const SchemaGuess found = guess_text(text);
  EXPECT_TRUE(found.options.header);
  EXPECT_EQ(role_of(found, "click"), ColumnRole::label);
  EXPECT_EQ(role_of(found, "price"), ColumnRole::dense);
  for (const auto& [name, why] :
       {std::pair{"", "no name: row numbers, as pandas writes them"},
        {"order", "a key"},
        {"paid", "LEAK: filled in 100.0 % of the positive rows and 0.0 % of the negative ones"},
        {"country", "constant"},
        {"empty", "empty"}}) {
    EXPECT_EQ(role_of(found, name), ColumnRole::ignore) << name;
    EXPECT_THAT(column_of(found, name).why, HasSubstr(why)) << name;
    EXPECT_THAT(found.toml, Not(HasSubstr("name = \"" + std::string(name) + "\"")));
  }
  EXPECT_THAT(found.toml, HasSubstr("# Left out: \"paid\": LEAK: filled in 100.0 %"));
}

TEST_F(GuessSchema, words_for_no_value_and_amounts_of_one_label_are_leaks) {
  std::string text = "click,x,sold_at,why,revenue,size\n";
  for (int64_t i = 0; i < 3000; ++i) {
    const bool click = draw(i, 4) == 0, some = draw(i, 2, 1) == 0;
    text += std::string(click ? "1," : "0,") + std::to_string(draw(i, 1000, 2)) + ".5," +
            (click ? "2024-03-0" + std::to_string(1 + i % 9) : "NULL") + "," +
            (click && some ? "gift" + std::to_string(i % 5) : "None") + "," +
            (click && some ? std::to_string(1 + draw(i, 90, 3)) : "0") + "," +
            (i % 100 == 7 ? " " : std::to_string(draw(i, 5000, 4)) + ".25") + "\n";
  }
  const SchemaGuess found = guess_text(text);
  for (const char* name : {"sold_at", "why", "revenue"}) {
    EXPECT_EQ(role_of(found, name), ColumnRole::ignore) << name;
    EXPECT_THAT(column_of(found, name).why, HasSubstr("LEAK")) << name;
  }
  EXPECT_EQ(role_of(found, "size"), ColumnRole::dense) << "a blank is no value";
}

TEST_F(GuessSchema, lists_may_have_spaces_codes_and_slashes) {
  const auto list = [](int64_t row, const std::string& separator, const std::string& prefix) {
    std::string cell;
    for (int64_t n = 0; n <= draw(row, 4); ++n)
      cell += (n > 0 ? separator : "") + prefix + std::to_string(100 + draw(row, 30, n + 1));
    return cell;
  };
  std::string text = "click\tnews\tspaced\tnumbers\tslashed\tgenres\tdate\ttitle\n";
  for (int64_t i = 0; i < 3000; ++i)
    text += std::to_string(i * 7 % 3 % 2) + "\t" + list(i, " ", "N") + "\t" + list(i, " | ", "N") +
            "\t" + list(i, ", ", "") + "\t" + list(i, "/", "") + "\t" + list(i, ", ", "Genre ") +
            "\t" + std::to_string(1 + i % 12) + "/" + std::to_string(1 + i % 28) + "/2024\tThe " +
            std::to_string(i % 50) + " of them\n";
  const SchemaGuess found = guess_text(text);
  for (const auto& [name, separator] : {std::pair{"news", " "},
                                        {"spaced", " | "},
                                        {"numbers", ","},
                                        {"slashed", "/"},
                                        {"genres", ", "},
                                        {"date", ""},
                                        {"title", ""}})
    EXPECT_EQ(column_of(found, name).spec.list_separator, separator) << name;
  EXPECT_EQ(column_of(found, "numbers").spec.id_text, IdText::integer);
}

TEST_F(GuessSchema, what_text_is_not_read_as_is_left_out_by_its_name) {
  std::string text = "click;price;tags;shop\n";
  for (int64_t i = 0; i < 1000; ++i)
    text += std::to_string(draw(i, 2)) + ";" + (i % 3 == 0 ? "-" : "") +
            std::to_string(draw(i, 300, 1)) + "," + std::to_string(10 + draw(i, 89, 2)) + ";[" +
            std::to_string(draw(i, 9, 3)) + ", " + std::to_string(draw(i, 9, 4)) + "];" +
            std::to_string(draw(i, 7, 5)) + "\n";
  const SchemaGuess found = guess_text(text);
  EXPECT_THAT(column_of(found, "price").why, HasSubstr("a decimal comma"));
  EXPECT_THAT(column_of(found, "tags").why, HasSubstr("lists in brackets"));
  EXPECT_FALSE(column_of(found, "price").kept);
  std::string pairs = "click;pair\n";
  for (int64_t i = 0; i < 1000; ++i)
    pairs += std::to_string(draw(i, 2)) + ";" +
             (i % 50 == 3
                  ? "NULL"
                  : std::to_string(1 + draw(i, 40, 1)) + "," + std::to_string(1 + draw(i, 40, 2))) +
             "\n";
  const SchemaGuess lists = guess_text(pairs);
  EXPECT_EQ(column_of(lists, "pair").spec.list_separator, ",") << "two ids are no decimal";
  EXPECT_EQ(column_of(lists, "pair").spec.id_text, IdText::integer);
  EXPECT_FALSE(column_of(found, "tags").kept);
}

TEST_F(GuessSchema, one_line_without_an_end_is_not_refused_for_carriage_returns) {
  for (const char* line : {"y,a,b", "y,a,b\r", "1,2,3"}) {
    const auto found = guess_schema(posix_files(), write("line.csv", line));
    EXPECT_THAT(found.status().message(), Not(HasSubstr("carriage return"))) << line;
  }
}

TEST_F(GuessSchema, seconds_may_have_fractions) {
  std::string text = "at,x,click\n";
  for (int64_t i = 0; i < 300; ++i)
    text += std::to_string(1413883815 + 60 * i) + "." + std::to_string(draw(i, 10)) + "," +
            std::to_string(draw(i, 40, 1)) + "," + std::to_string(draw(i, 2, 2)) + "\n";
  EXPECT_EQ(role_of(guess_text(text), "at"), ColumnRole::time);
}

// One positive row, one negative: as sampling writes them.
TEST_F(GuessSchema, finds_leaks_where_labels_alternate) {
  std::string text = "state,x,click\n";
  for (int64_t i = 0; i < 2000; ++i)
    text += std::string(i % 2 == 0 ? "bad," : "good,") + std::to_string(draw(i, 1000)) + ".5," +
            std::to_string(i % 2) + "\n";
  EXPECT_THAT(column_of(guess_text(text), "state").why, HasSubstr("LEAK"));
}

TEST_F(GuessSchema, integers_that_rank_rows_are_dense) {
  std::string text = "score,color,click\n";
  for (int64_t i = 0; i < 3000; ++i) {
    const int64_t score = 300 + draw(i, 550);
    text += std::to_string(score) + "," + std::to_string(7 * draw(i, 90, 1) + 1000) + "," +
            std::to_string(draw(i, 550, 2) < score - 300 ? 1 : 0) + "\n";
  }
  const SchemaGuess found = guess_text(text);
  EXPECT_EQ(role_of(found, "score"), ColumnRole::dense);
  EXPECT_EQ(role_of(found, "color"), ColumnRole::id);
}

TEST_F(GuessSchema, a_folder_with_files_in_folders_is_refused_by_name) {
  ASSERT_TRUE(posix_files().make_folder(folder_.path() + "/day").ok());
  write("day/part-1.csv", "y,a\n1,2\n");
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("has files in 'day' too"));
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("/*/*.csv"));
  write("part-0.csv", "y,a\n1,2\n");
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("has files in 'day' too"));
}

TEST_F(GuessSchema, the_time_is_the_column_of_seconds_and_not_the_hour) {
  std::string text = "hour,timestamp,label,user\n";
  for (int i = 0; i < 500; ++i) {
    const int hour = i / 25 % 24;
    text += (hour < 10 ? "0" : "") + std::to_string(hour) + "," +
            std::to_string(1511544070 + 144 * i) + "," + std::to_string(draw(i, 2)) + ",u" +
            std::to_string(draw(i, 40, 1)) + "\n";
  }
  const SchemaGuess found = guess_text(text);
  EXPECT_EQ(role_of(found, "timestamp"), ColumnRole::time);
  EXPECT_EQ(role_of(found, "hour"), ColumnRole::id);
  EXPECT_THAT(found.toml, HasSubstr("split.by = \"time\""));
}

TEST_F(GuessSchema, tells_of_times_that_are_no_seconds) {
  std::string seconds = "click,ts,site\n", milliseconds = seconds;
  for (int64_t i = 0; i < 200; ++i) {
    const std::string click = std::to_string(draw(i, 2)), site = std::to_string(draw(i, 9, 1));
    seconds += click + "," + std::to_string(1511544070 + 60 * i) + "," + site + "\n";
    milliseconds += click + "," + std::to_string(1511544070123 + 60000 * i) + "," + site + "\n";
  }
  for (const auto& [text, told] : {std::pair(seconds, false), std::pair(milliseconds, true)}) {
    const ColumnGuess time = column_of(guess_text(text), "ts");
    EXPECT_EQ(time.spec.role, ColumnRole::time);
    EXPECT_EQ(time.why.find("smaller units than seconds") != std::string::npos, told) << time.why;
  }
}

TEST_F(GuessSchema, finds_lists_and_bags_of_weighted_ids) {
  std::string text = "label,items,genres,bag,title\n";
  for (int i = 0; i < 400; ++i) {
    const auto id = [&](int k) { return std::to_string(draw(i, 60, static_cast<uint64_t>(k))); };
    text += std::to_string(i % 3 == 0) + "," + id(1) + "^" + id(2) + "^" + id(3) + ",g" +
            std::to_string(draw(i, 9, 4)) + "|g" + std::to_string(draw(i, 9, 5)) + "," + id(6) +
            ":0." + id(7) + "|" + id(8) + ":1.5,A title " + id(9) + "\n";
  }
  const SchemaGuess found = guess_text(text);
  const ColumnSpec& items = column_of(found, "items").spec;
  EXPECT_EQ(items.list_separator, "^");
  EXPECT_EQ(items.weight_separator, "");
  EXPECT_EQ(items.id_text, IdText::integer);
  EXPECT_EQ(column_of(found, "genres").spec.list_separator, "|");
  const ColumnSpec& bag = column_of(found, "bag").spec;
  EXPECT_EQ(bag.list_separator, "|");
  EXPECT_EQ(bag.weight_separator, ":");
  EXPECT_EQ(column_of(found, "title").spec.list_separator, "");
  EXPECT_EQ(found.tables[0].distinct, 60);
  EXPECT_THAT(found.toml, HasSubstr("name = \"items\"\npooling = \"sum\""));
}

TEST_F(GuessSchema, long_lists_are_averaged) {
  std::string text = "click,seen\n";
  for (int64_t i = 0; i < 500; ++i) {
    text += std::to_string(draw(i, 2)) + ",";
    for (int64_t n = 0; n < 20; ++n)
      text += (n > 0 ? "|" : "") + std::to_string(draw(i, 90, n + 1));
    text += "\n";
  }
  EXPECT_THAT(guess_text(text).toml, HasSubstr("name = \"seen\"\npooling = \"mean\""));
}

TEST_F(GuessSchema, the_label_is_asked_for_where_nothing_tells_it) {
  std::string text = "a,b,c,d\n";
  for (int i = 0; i < 200; ++i) {
    text += std::to_string(i % 40) + "," + std::to_string(draw(i, 2, 1)) + "," +
            std::to_string(draw(i, 2, 2)) + ",x" + std::to_string(i % 5) + "\n";
  }
  const SchemaGuess found = guess_text(text);
  EXPECT_EQ(found.label.column, -1);
  EXPECT_THAT(found.toml, HasSubstr("Give one of them role = \"label\""));
  const SchemaGuess named = guess_text(text, "c");
  EXPECT_EQ(role_of(named, "c"), ColumnRole::label);
  EXPECT_THAT(refusal(folder_.path() + "/rows.csv", "q"),
              HasSubstr("--label: the data has no column 'q'"));
  EXPECT_THAT(refusal(folder_.path() + "/rows.csv", "d"),
              HasSubstr("--label: column 'd' has 5 distinct values"));
}

TEST_F(GuessSchema, ratings_words_and_minus_one_become_labels_by_a_rule) {
  const auto rows = [](const std::string& name, std::initializer_list<const char*> values) {
    std::string text = "user," + name + "\n";
    for (int i = 0; i < 200; ++i) {
      text += "u" + std::to_string(draw(i, 20)) + "," +
              values.begin()[draw(i, static_cast<int64_t>(values.size()), 1)] + "\n";
    }
    return text;
  };
  const SchemaGuess ratings = guess_text(rows("rating", {"1", "2", "3", "4", "5"}));
  EXPECT_EQ(ratings.options.label.threshold, 4.0);
  EXPECT_THAT(ratings.toml, HasSubstr("label.threshold = 4.0"));
  EXPECT_EQ(guess_text(rows("y", {"-1", "1"})).options.label.threshold, 1.0);
  const SchemaGuess words = guess_text(rows("income", {"<=50K", ">50K"}));
  EXPECT_THAT(words.options.label.positive, ElementsAre(">50K"));
  EXPECT_EQ(role_of(words, "income"), ColumnRole::label);
  EXPECT_EQ(guess_text(rows("clicked", {"True", "False"})).options.label, LabelOptions());
}

TEST_F(GuessSchema, a_logarithm_is_for_columns_without_values_below_0) {
  const auto rows = [](double shift) {
    std::string text = "label,a,b\n";
    for (int i = 0; i < 300; ++i) {
      text += std::to_string(draw(i, 2)) + "," +
              std::to_string(static_cast<double>(draw(i, 900, 1)) / 7.0 - shift) + "," +
              std::to_string(static_cast<double>(draw(i, 90, 2)) + 0.5) + "\n";
    }
    return text;
  };
  EXPECT_THAT(guess_text(rows(0)).training.dense_ops, ElementsAre("fill_null", "log"));
  EXPECT_THAT(guess_text(rows(1)).training.dense_ops, ElementsAre("fill_null", "standardize"));
}

TEST_F(GuessSchema, a_doubled_slash_in_a_path_is_one) {
  write("rows.csv", "click,site\n0,a\n1,b\n");
  const SchemaGuess found = guess(folder_.path() + "//rows.csv");
  EXPECT_EQ(found.options.path, folder_.path());
  EXPECT_THAT(found.options.train, ElementsAre("rows.csv"));
}

TEST_F(GuessSchema, reads_libsvm_rows_and_delimiters_of_several_characters) {
  const SchemaGuess svm = guess_text("-1 3:1 7:0.5\n1 3:1 9:2\n1 7:1\n-1 1:1 2:1\n");
  EXPECT_EQ(svm.options.format, DataFormat::libsvm);
  EXPECT_EQ(svm.options.label.threshold, 1.0);
  ASSERT_EQ(svm.tables.size(), 1u);
  EXPECT_EQ(svm.tables[0].column, "features");
  EXPECT_EQ(svm.tables[0].distinct, 5);
  std::string movies, census;
  for (int i = 0; i < 100; ++i) {
    movies += std::to_string(draw(i, 9)) + "::" + std::to_string(draw(i, 7, 1)) +
              "::" + std::to_string(draw(i, 2, 2)) + "::" + std::to_string(978300000 + 977 * i) +
              "\n";
    census += std::to_string(17 + draw(i, 60)) + ", Private " + std::to_string(draw(i, 4, 1)) +
              ", " + (i % 2 == 0 ? "<=50K" : ">50K") + "\n";
  }
  EXPECT_EQ(guess_text(movies).options.delimiter, "::");
  EXPECT_EQ(guess_text(movies).options.columns.size(), 4u);
  const SchemaGuess adult = guess_text(census);
  EXPECT_EQ(adult.options.delimiter, ", ");
  EXPECT_THAT(adult.options.label.positive, ElementsAre(">50K"));
}

TEST_F(GuessSchema, a_byte_order_mark_is_no_part_of_the_first_name) {
  auto found = guess_text("\xEF\xBB\xBFsite,click\na,0\nb,1\n");
  EXPECT_EQ(role_of(found, "site"), ColumnRole::id);
  found.options.cache = "";
  ThreadPool pool(1);
  const auto reader = open_reader(found.options, Subset::all, 1, pool, posix_files());
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ(*(*reader)->rows(), 2);
}

TEST_F(GuessSchema, says_why_it_cannot) {
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("has no files"));
  EXPECT_THAT(refusal(folder_.path() + "/none"), HasSubstr("none: matches no file"));
  const std::string empty = write("empty.csv", "");
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("empty.csv: is empty"));
  const std::string latin = write("latin.csv", "click,caf\xE9\n1,a\n0,b\n");
  EXPECT_EQ(refusal(latin), latin + ": the name of column 2: is not UTF-8 text");
}

}  // namespace
}  // namespace recmill::reader
