// SPDX-License-Identifier: Apache-2.0
// The fast parser against the plain one: the same bits and the same errors, on every SIMD target.
#include "reader/text/text_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/testing/mutate.h"
#include "reader/testing/text_rows.h"

namespace recmill::reader {
namespace {

using ::testing::HasSubstr;

void expect_equal(const TextLayout& layout, const std::string& text, const std::string& what) {
  const Outcome plain = parse_all(layout, text, ParserKind::plain);
  const Outcome fast = parse_all(layout, text, ParserKind::fast);
  EXPECT_EQ(fast.errors, plain.errors) << what << ": " << text;
  ASSERT_EQ(fast.rows.size(), plain.rows.size()) << what;
  for (size_t i = 0; i < plain.rows.size(); ++i) {
    ASSERT_EQ(fast.rows[i], plain.rows[i]) << what << ", row " << i << " of " << text;
  }
}

template <typename Body>
void on_every_target(Body body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

const TextLayout& criteo() {
  static const TextLayout layout = *criteo_layout({});
  return layout;
}

TEST(PlainTextParser, reads_each_kind_of_cell) {
  RowValues values;
  const auto layout = mixed_layout();
  ASSERT_TRUE(parse_row(layout, "1,0.5,NA,ff,-1,apple,1|2||3,x,a:1;b:0.5,u1,100,2", values).ok());
  EXPECT_EQ(values.label, 1);
  EXPECT_EQ(values.dense[0], 0.5f);
  EXPECT_TRUE(std::isnan(values.dense[1]));
  EXPECT_EQ(values.ids[0], std::vector<uint64_t>{255});
  EXPECT_EQ(values.ids[1], std::vector<uint64_t>{~uint64_t{0}});
  EXPECT_EQ(values.ids[2], std::vector<uint64_t>{hash_bytes("apple")});
  EXPECT_EQ(values.ids[3], (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(values.ids[4], (std::vector<uint64_t>{hash_bytes("a"), hash_bytes("b")}));
  EXPECT_EQ(values.weights[4], (std::vector<float>{1, 0.5f}));
  EXPECT_EQ(values.group, hash_bytes("u1"));
  EXPECT_EQ(values.time, 100);
  EXPECT_EQ(values.sample_weight, 2);
}

TEST(PlainTextParser, takes_quotes_off_as_rfc_4180_says) {
  const auto layout = mixed_layout();
  std::vector<std::string> cells;
  const auto split = [&](std::string_view row) { return split_cells(layout, row, cells); };
  ASSERT_TRUE(split("\"a,b\",\"say \"\"no\"\"\",,\"\"").ok());
  EXPECT_EQ(cells, (std::vector<std::string>{"a,b", "say \"no\"", "", ""}));
  ASSERT_TRUE(split("5\" tall,").ok());
  EXPECT_EQ(cells, (std::vector<std::string>{"5\" tall", ""}));
  EXPECT_THAT(split("\"open").message(), HasSubstr("not closed"));
  EXPECT_THAT(split("\"a\"\"").message(), HasSubstr("not closed"));
  EXPECT_THAT(split("\"a\"b,c").message(), HasSubstr("after a closing quote"));
}

TEST(PlainTextParser, errors_name_the_column_and_show_the_cell) {
  RowValues values;
  const auto message = [&](std::string_view row) {
    return parse_row(criteo(), row, values).message();
  };
  EXPECT_EQ(message(criteo_row("x")), "column I1: 'x' is not a finite number");
  EXPECT_EQ(message(criteo_row("1", "0g")),
            "column C1: '0g' is not a hexadecimal id of up to 16 digits");
  EXPECT_THAT(message(criteo_row("1", "11112222333344445")), HasSubstr("up to 16 digits"));
  EXPECT_EQ(message("1\t2"), "has 2 columns instead of 40");
  EXPECT_EQ(message(""), "has 1 columns instead of 40");
  EXPECT_EQ(message(criteo_row() + "\t"), "has 41 columns instead of 40");
  EXPECT_EQ(message(criteo_row().substr(1)), "column label: no value");
  EXPECT_THAT(message(criteo_row() + "\xE2\x82"), HasSubstr("inside a UTF-8 character"));
  EXPECT_THAT(message(criteo_row("inf")), HasSubstr("finite"));
}

TEST(PlainTextParser, knows_when_text_ends_inside_a_character) {
  EXPECT_FALSE(ends_inside_character(""));
  EXPECT_FALSE(ends_inside_character("a"));
  EXPECT_FALSE(ends_inside_character("\xC3\xA9"));
  EXPECT_FALSE(ends_inside_character("\xE2\x82\xAC"));
  EXPECT_FALSE(ends_inside_character("\xF0\x9F\x98\x80"));
  for (const char* cut : {"\xC3", "\xE2", "\xE2\x82", "\xF0", "\xF0\x9F", "\xF0\x9F\x98"}) {
    EXPECT_TRUE(ends_inside_character(cut));
  }
}

TEST(RowEnds, of_text_with_quotes_are_those_outside_of_them) {
  const auto layout = mixed_layout();
  const auto ends_of = [&](std::string_view text) {
    std::vector<uint32_t> ends;
    find_row_ends(text, layout, ends);
    return ends;
  };
  EXPECT_EQ(ends_of("a\nb\n\nc"), (std::vector<uint32_t>{2, 4})) << "a blank line is no row";
  EXPECT_EQ(ends_of("\n \t\r\na\n\"\n\"\n\n"), (std::vector<uint32_t>{7, 11}));
  EXPECT_EQ(ends_of("\"a\nb\",c\nd\n"), (std::vector<uint32_t>{8, 10}));
  EXPECT_EQ(ends_of("\"a\"\"\n\"\nx\"\ny\"\n"), (std::vector<uint32_t>{7, 10, 13}));
}

TEST(PlainTextParser, splits_at_delimiters_of_several_characters) {
  auto layout = mixed_layout();
  layout.delimiter = "::";
  std::vector<std::string> cells;
  ASSERT_TRUE(split_cells(layout, "1::a:b::::\"x::y\"::", cells).ok());
  EXPECT_EQ(cells, (std::vector<std::string>{"1", "a:b", "", "x::y", ""}));
  ASSERT_TRUE(split_cells(layout, ":::", cells).ok());
  EXPECT_EQ(cells, (std::vector<std::string>{"", ":"}));
  EXPECT_THAT(split_cells(layout, "\"a\":b", cells).message(), HasSubstr("after a closing quote"));
  std::vector<uint32_t> ends;
  find_row_ends("1::\"a\nb\"\n2:\"\n", layout, ends);
  EXPECT_EQ(ends, (std::vector<uint32_t>{9, 13})) << "a quote opens behind a whole delimiter";
}

// In each of the places of rows that are parsed together.
void expect_equal_among_others(const std::string& row, const std::string& what) {
  for (int place = 0; place < 8; ++place) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
      const std::string number = std::to_string(i * 12345 - 99999);
      text += (i == 8 + place ? row : criteo_row(number.c_str(), number.c_str() + 1)) + "\n";
    }
    expect_equal(criteo(), text, what + " at " + std::to_string(place));
  }
}

TEST(FastTextParser, equals_the_plain_one_on_cells_around_every_edge) {
  on_every_target([] {
    for (const char* integer :
         {"",          "0",          "-1",
          "-",         "--1",        "+1",
          "1234567",   "12345678",   "123456789",
          "-12345678", "-123456789", "99999999",
          "16777217",  "-0",         "007",
          "1.5",       "1e5",        " 1",
          "0x1",       "nan",        "99999999999999999999999999999999999999999",
          "NaN",       "  ",         " 12 ",
          "+12345678", "True",       "false",
          "1e-46",     "-1e-46",     "1e39",
          "7.0",       "inf",        "+-1",
          "/",         ":",          "1:",
          "\x80"}) {
      expect_equal(criteo(), criteo_row(integer) + "\n" + criteo_row("7"), integer);
      expect_equal_among_others(criteo_row(integer), integer);
    }
    for (const char* id : {"",
                           "0",
                           "f",
                           "F",
                           "g",
                           "G",
                           "@",
                           "`",
                           "/",
                           ":",
                           "0123456789abcdef",
                           "FFFFFFFFFFFFFFFF",
                           "0123456789abcdeg",
                           "g123456789abcdef",
                           "12345678",
                           "123456789",
                           "00000000000000000",
                           "0x12",
                           "-1",
                           "\xC3\xA9",
                           "a\x80"}) {
      expect_equal(criteo(), criteo_row("1", id) + "\r\n" + criteo_row("7"), id);
      expect_equal_among_others(criteo_row("1", id), id);
    }
    for (const char* row : {"", "\n", "\t", "\r\n", "1", "1\n\n1", "\t\t\t\t\n"}) {
      expect_equal(criteo(), row, "row");
    }
  });
}

TEST(FastTextParser, equals_the_plain_one_at_every_number_of_rows_and_columns) {
  on_every_target([] {
    for (const int rows : {0, 1, 2, 511, 512, 513, 1025}) {
      std::string text;
      for (int row = 0; row < rows; ++row) {
        text += criteo_row(row % 3 ? std::to_string(row * row).c_str() : "",
                           row % 5 ? std::to_string(row * 7).c_str() : "");
        text += '\n';
      }
      expect_equal(criteo(), text, std::to_string(rows));
    }
    for (int64_t columns = 0; columns < 140; columns += 9) {
      const auto layout = criteo_layout({columns, columns / 2});
      std::string row = "0";
      for (int64_t c = 0; c < columns + columns / 2; ++c) row += "\t1";
      expect_equal(*layout, row + "\n" + row + "\t\n" + row, std::to_string(columns));
    }
  });
}

TEST(FastTextParser, equals_the_plain_one_whatever_cells_stand_above_each_other) {
  const std::vector<std::string> integers{"",          "0",        "-1",        "7",
                                          "-0",        "1234567",  "-1234567",  "12345678",
                                          "-12345678", "99999999", "123456789", "2.5"};
  const std::vector<std::string> ids{"",         "0",        "f",         "aB",
                                     "deadbeef", "FFFFFFFF", "123456789", "0123456789abcdef"};
  on_every_target([&] {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const Random random(seed, Purpose::test);
      std::string text;
      for (uint64_t row = 0; row < 100; ++row) {
        text += "1";
        for (uint64_t c = 0; c < 39; ++c) {
          const auto& cells = c < 13 ? integers : ids;
          // Most columns of a group have short cells only, so that those are parsed together.
          const uint64_t rare = random.below(8, row / 8 * 64 + c, 0) == 0 ? cells.size() : 5;
          text += "\t" + cells[random.below(rare, row * 64 + c, 1)];
        }
        text += random.below(150, row, 2) == 0 ? "x\n" : "\n";
      }
      expect_equal(criteo(), text, "seed " + std::to_string(seed));
    }
  });
}

TEST(FastTextParser, equals_the_plain_one_on_labels_and_integer_ids_as_they_come) {
  const auto layout = mixed_layout();
  const auto row = [](const std::string& label, const std::string& id) {
    return label + ",1,2,f," + id + ",w,1|" + id + "||2,x,a:1,u,1,1\n";
  };
  on_every_target([&] {
    for (const char* label : {"0", "1", "2", "-1", "0.5", "1.0", "+1", " 1", "True", "nan", "",
                              "1e-46", "1.0000001", "-0", "x"}) {
      for (const char* id : {"7", "7.0", " 7 ", "+7", "-7", "-7.0", "nan", " ", "", "7.5", "1e3",
                             "18446744073709551615", "18446744073709551616", "12345678901234567.0",
                             "-9223372036854775808", "-9223372036854775809", "x"}) {
        std::string text;
        for (int i = 0; i < 20; ++i) text += i == 11 ? row(label, id) : row("1", "5");
        expect_equal(layout, text, std::string(label) + " " + id);
      }
    }
  });
}

TEST(FastTextParser, equals_the_plain_one_on_rows_without_a_label) {
  DataOptions options = mixed_options();
  options.scored.labels = false;
  options.columns.erase(options.columns.begin());
  const auto layout = csv_layout(options, {});
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  std::string text;
  for (int row = 0; row < 20; ++row) {  // what has quotes the plain parser looks at
    text += row % 3 == 0 ? "0.5,NA,ff,12,\"a,b\",1|2,x,a:1,u1,100,1\n"
                         : "7,1,0,1,apple,3,y,b:2,u2,5,1\n";
  }
  on_every_target([&] { expect_equal(*layout, text, "no label"); });
  EXPECT_EQ(parse_all(*layout, text, ParserKind::fast).rows.size(), 20u);
}

TEST(FastTextParser, equals_the_plain_one_on_mutations_of_every_kind_of_column) {
  const auto layout = mixed_layout();
  expect_equal(layout, mixed_rows(), "whole");
  EXPECT_EQ(parse_all(layout, mixed_rows(), ParserKind::fast).rows.size(), 5u);
  on_every_target([&] {
    for (uint64_t seed = 0; seed < 1500; ++seed) {
      expect_equal(layout, mutated(mixed_rows(), seed), "seed " + std::to_string(seed));
    }
  });
}

// The samples of real data, if they are there.
std::string real_rows(const char* file, size_t rows) {
  const char* const folder = std::getenv("RECMILL_DATA");
  if (folder == nullptr || *folder == 0) return "";
  auto text = read_text(posix_files(), std::string(folder) + "/" + file);
  if (!text.ok()) return "";
  size_t end = 0;
  for (size_t row = 0; row < rows && end < text->size(); ++row) end = text->find('\n', end) + 1;
  return text->substr(0, end);
}

TEST(FastTextParser, equals_the_plain_one_on_real_samples_and_their_mutations) {
  for (const char* file : {"criteo_kaggle/train.tsv", "criteo_terabyte/part-0.tsv"}) {
    const std::string text = real_rows(file, 3000);
    if (text.empty()) GTEST_SKIP() << "no real samples: RECMILL_DATA does not have " << file;
    const std::string few = text.substr(0, text.find('\n', 2000) + 1);
    on_every_target([&] {
      expect_equal(criteo(), text, file);
      for (uint64_t seed = 0; seed < 300; ++seed) {
        expect_equal(criteo(), mutated(few, seed), "seed " + std::to_string(seed));
      }
    });
  }
}

}  // namespace
}  // namespace recmill::reader
