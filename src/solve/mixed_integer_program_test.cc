// SPDX-License-Identifier: Apache-2.0
#include "solve/mixed_integer_program.h"

#include <gtest/gtest.h>

#include <cmath>

namespace recmill::solve {
namespace {

MixedIntegerProgram two_columns() {
  MixedIntegerProgram program;
  program.add_column(1.0, 0.0, 4.0);
  program.add_binary(-2.0);
  return program;
}

std::string refusal_of_row(double lower, double upper, std::vector<Entry> entries) {
  MixedIntegerProgram program = two_columns();
  program.add_row(0.0, 1.0, {{0, 1.0}});
  program.add_row(lower, upper, std::move(entries));
  return program.check().message();
}

std::string refusal_of_column(double cost, double lower, double upper) {
  MixedIntegerProgram program = two_columns();
  program.add_column(cost, lower, upper);
  return program.check().message();
}

TEST(MixedIntegerProgram, numbers_columns_and_rows_from_0) {
  MixedIntegerProgram program;
  EXPECT_EQ(program.add_row(-kInfinity, 3.0, {{1, 2.0}}), 0);  // its column comes later
  EXPECT_EQ(program.add_column(1.0, 0.0, kInfinity), 0);
  EXPECT_FALSE(program.has_integers());
  EXPECT_EQ(program.add_binary(0.5), 1);
  EXPECT_TRUE(program.has_integers());
  EXPECT_EQ(program.add_row(1.0, 1.0, {}), 1);
  EXPECT_TRUE(program.check().ok());
  EXPECT_EQ(program.columns()[1], (Column{0.5, 0.0, 1.0, true}));
  EXPECT_EQ(program.objective(std::vector{2.0, 1.0}), 2.5);
}

TEST(MixedIntegerProgram, a_row_that_cannot_be_is_named) {
  EXPECT_EQ(refusal_of_row(0.0, 1.0, {{2, 1.0}}), "row 1: names column 2, and there are 2 columns");
  EXPECT_EQ(refusal_of_row(0.0, 1.0, {{-1, 1.0}}),
            "row 1: names column -1, and there are 2 columns");
  EXPECT_EQ(refusal_of_row(0.0, 1.0, {{1, 1.0}, {0, 1.0}, {1, 2.0}}),
            "row 1: names column 1 twice");
  EXPECT_EQ(refusal_of_row(0.0, 1.0, {{1, std::nan("")}}),
            "row 1: value nan of column 1 is neither 0 nor between 1e-09 and 1e+15");
  EXPECT_EQ(refusal_of_row(0.0, 1.0, {{1, 1e-12}}),
            "row 1: value 1e-12 of column 1 is neither 0 nor between 1e-09 and 1e+15");
  EXPECT_EQ(refusal_of_row(std::nan(""), 1.0, {}), "row 1: bounds nan to 1 hold no number");
  EXPECT_EQ(refusal_of_row(2.0, 1.0, {}), "row 1: bounds 2 to 1 hold no number");
  EXPECT_EQ(refusal_of_row(0.0, 1e30, {}),
            "row 1: bound 1e+30 is neither below 1e+20 nor infinite");
}

TEST(MixedIntegerProgram, a_column_that_cannot_be_is_named) {
  EXPECT_EQ(refusal_of_column(std::nan(""), 0.0, 1.0),
            "column 2: cost nan is no number below 1e+20");
  EXPECT_EQ(refusal_of_column(kInfinity, 0.0, 1.0), "column 2: cost inf is no number below 1e+20");
  EXPECT_EQ(refusal_of_column(1.0, 0.0, std::nan("")), "column 2: bounds 0 to nan hold no number");
  EXPECT_EQ(refusal_of_column(1.0, kInfinity, kInfinity),
            "column 2: bounds inf to inf hold no number");
}

TEST(MixedIntegerProgram, values_outside_of_bounds_are_named) {
  MixedIntegerProgram program = two_columns();
  program.add_row(1.0, 2.0, {{0, 1.0}, {1, 1.0}});
  EXPECT_TRUE(program.check_values(std::vector{1.0, 1.0}).ok());
  EXPECT_TRUE(program.check_values(std::vector{1.0 + 1e-9, 1.0}).ok());
  EXPECT_EQ(program.check_values(std::vector{1.25, 1.0}).message(),
            "row 0: 2.25 is not within 1 to 2");
  EXPECT_EQ(program.check_values(std::vector{5.0, 1.0}).message(),
            "column 0: 5 is not within 0 to 4");
  EXPECT_EQ(program.check_values(std::vector{1.0, 0.5}).message(),
            "column 1: 0.5 is not a whole number");
  EXPECT_EQ(program.check_values(std::vector{1.0}).message(), "1 values for 2 columns");
  EXPECT_FALSE(program.check_values(std::vector{std::nan(""), 0.0}).ok());
}

}  // namespace
}  // namespace recmill::solve
