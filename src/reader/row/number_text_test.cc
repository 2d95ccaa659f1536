// SPDX-License-Identifier: Apache-2.0
#include "reader/row/number_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "reader/row/named_values.h"

namespace recmill::reader {
namespace {

using ::testing::HasSubstr;

TEST(NumberText, a_number_too_small_for_float32_is_zero_with_its_sign_and_one_too_large_an_error) {
  const std::string zeros(400, '0');
  for (const std::string& small :
       {std::string("1e-46"), std::string("1e-400"), std::string("1e-99999999999999999999"),
        "0." + zeros + "1", "0." + zeros + "1e300", std::string("12345e-400")}) {
    ASSERT_TRUE(parse_number(small).ok()) << small;
    EXPECT_EQ(*parse_number(small), 0) << small;
    EXPECT_FALSE(std::signbit(*parse_number(small))) << small;
    EXPECT_TRUE(std::signbit(*parse_number("-" + small))) << small;
  }
  EXPECT_EQ(*parse_number("1e-45"), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(*parse_number("7.1e-46"), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(*parse_number("7.0e-46"), 0);
  EXPECT_EQ(*parse_number("-0"), 0);
  EXPECT_TRUE(std::signbit(*parse_number("-0")));
  for (const std::string& large : {std::string("1e39"), std::string("1e400"), "1" + zeros,
                                   std::string("1e99999999999999999999"), std::string("inf"),
                                   std::string("-infinity"), std::string("0.1e401")}) {
    EXPECT_THAT(parse_number(large).status().message(), HasSubstr("is not a finite number"));
  }
}

TEST(NumberText, spaces_a_plus_and_words_are_taken_and_nothing_else_is) {
  EXPECT_EQ(*parse_number(" 1.5\t"), 1.5f);
  EXPECT_EQ(*parse_number("+1"), 1);
  EXPECT_EQ(*parse_number("True"), 1);
  EXPECT_EQ(*parse_number("FALSE"), 0);
  for (const char* none : {"", " ", "+", "-", "+-1", "++1", "-+1", "--1", "1 2", "1,5", "0x1", "t",
                           "truely", "1e", "1e+", ".", "e5", "nan", "1_000"}) {
    EXPECT_FALSE(parse_number(none).ok()) << none;
  }
  for (const char* none : {"", "  ", "nan", "NaN", " NAN "}) EXPECT_TRUE(is_no_number(none));
  for (const char* some : {"0", "nano", "na", "x"}) EXPECT_FALSE(is_no_number(some));
}

TEST(NumberText, a_whole_number_is_one_however_it_is_written) {
  for (const char* seven : {"7", "7.0", "7.", "+7", " 7 ", "70e-1", "0.7e1", "7e0", "007.000"}) {
    EXPECT_EQ(parse_whole(seven), (Whole{false, 7})) << seven;
  }
  EXPECT_EQ(parse_whole("-7.0"), (Whole{true, 7}));
  EXPECT_EQ(parse_whole("-0.0"), (Whole{false, 0}));
  EXPECT_EQ(parse_whole("9007199254740993.0"), (Whole{false, 9007199254740993u}));
  EXPECT_EQ(parse_whole("18446744073709551615"), (Whole{false, ~uint64_t{0}}));
  EXPECT_EQ(parse_whole("0e99999999999999"), (Whole{false, 0}));
  for (const char* none :
       {"7.5", "1e-1", "18446744073709551616", "1e20", "nan", "", "-", "7.0.0"}) {
    EXPECT_EQ(parse_whole(none), std::nullopt) << none;
  }
  EXPECT_EQ(whole_of(std::numeric_limits<int64_t>::min()), (Whole{true, uint64_t{1} << 63}));
  EXPECT_EQ(whole_of(int8_t{-1}), (Whole{true, 1}));
}

TEST(NumberText, times_are_unix_seconds_or_iso_8601_rounded_down) {
  const std::pair<const char*, int64_t> times[] = {
      {"0", 0},
      {"-5", -5},
      {"1413849600.0", 1413849600},
      {"1.9", 1},
      {"-1.5", -2},
      {"2014-10-21", 1413849600},
      {" 2014-10-21 ", 1413849600},
      {"2014-10-21T00:00:01", 1413849601},
      {"2014-10-21 09:30", 1413849600 + 34200},
      {"2014-10-21T09:30:15.999Z", 1413849600 + 34215},
      {"2014-10-21T02:00:00+02:00", 1413849600},
      {"2014-10-20T22:30:00-0130", 1413849600},
      {"2014-10-21t05:00:00+05", 1413849600},
      {"1970-01-01", 0},
      {"1969-12-31T23:59:59.5", -1},
      {"2000-02-29", 951782400},
      {"2016-12-31T23:59:60Z", 1483228800},
      {"0001-01-01", -62135596800},
      {"-9223372036854775808", std::numeric_limits<int64_t>::min()}};
  for (const auto& [text, seconds] : times) {
    ASSERT_TRUE(parse_time(text).ok()) << text;
    EXPECT_EQ(*parse_time(text), seconds) << text;
  }
  for (const char* none :
       {"", "x", "2014-13-01", "2014-02-30", "2014-10-21T", "2014-10-21T24:00:00", "2014-10-21T09",
        "2014-10-21T09:60", "2014-10-21T09:30:61", "2014-10-21T09:30:15.", "2014-10-21T09:30+25:00",
        "2014-10-21T09:30+2", "2014-10-21x", "2014/10/21", "14-10-21", "9223372036854775808",
        "-9223372036854775808.5", "1e300", "2014-10-21T09:30Zx"}) {
    EXPECT_THAT(parse_time(none).status().message(), HasSubstr("is not a time")) << none;
  }
}

TEST(NamedValues, numbers_go_by_value_and_text_by_its_bytes) {
  const NamedValues named({"7.0", "-999.5", "0.1", "NA", "1e-46"});
  EXPECT_TRUE(named.has_number(int64_t{7}));
  EXPECT_TRUE(named.has_number(uint8_t{7}));
  EXPECT_TRUE(named.has_number(7.0f));
  EXPECT_TRUE(named.has_number(-999.5));
  EXPECT_TRUE(named.has_number(0.1f)) << "as float32 has it";
  EXPECT_TRUE(named.has_number(0.1));
  EXPECT_FALSE(named.has_number(double{0.1f}));
  EXPECT_TRUE(named.has_number(0.0f)) << "what is too small";
  EXPECT_FALSE(named.has_number(int64_t{0}));
  EXPECT_FALSE(named.has_number(int64_t{-7}));
  EXPECT_TRUE(named.has_number_in("+7"));
  EXPECT_TRUE(named.has_number_in("NA"));
  EXPECT_FALSE(named.has_number_in("na"));
  EXPECT_TRUE(named.has_whole_in("007"));
  EXPECT_TRUE(named.has_text("7.0"));
  EXPECT_FALSE(named.has_text("7"));
  EXPECT_TRUE(named.has_time(7));
  EXPECT_TRUE(NamedValues({"True"}).has_number(true));
  EXPECT_TRUE(NamedValues({"0"}).has_number(false));
  EXPECT_TRUE(NamedValues({"1970-01-02"}).has_time(86400));
  EXPECT_TRUE(NamedValues({"18446744073709551615"}).has_number(~uint64_t{0}));
  EXPECT_FALSE(NamedValues({"18446744073709551615"}).has_number(int64_t{-1}));
  EXPECT_TRUE(NamedValues({"9007199254740993"}).has_number(int64_t{9007199254740993}));
  EXPECT_FALSE(NamedValues({"9007199254740993"}).has_number(int64_t{9007199254740992}));
  EXPECT_FALSE(NamedValues().has_number(0.0));
}

}  // namespace
}  // namespace recmill::reader
