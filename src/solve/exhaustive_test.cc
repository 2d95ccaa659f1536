// SPDX-License-Identifier: Apache-2.0
#include "solve/exhaustive.h"

#include <gtest/gtest.h>

namespace recmill::solve {
namespace {

TEST(Exhaustive, takes_the_first_of_the_best) {
  MixedIntegerProgram program;  // two of three, of which two are equal
  for (const double cost : {2.0, 1.0, 2.0}) program.add_binary(cost);
  program.add_row(2.0, 2.0, {{0, 1.0}, {1, 1.0}, {2, 1.0}});
  const auto solution = solve_exhaustively(program, 8);
  ASSERT_TRUE(solution.ok()) << solution.status().message();
  EXPECT_EQ(solution->outcome, Outcome::optimal);
  EXPECT_EQ(solution->values, (std::vector{0.0, 1.0, 1.0}));
  EXPECT_EQ(solution->objective, 3.0);
  EXPECT_EQ(solution->dual_bound, 3.0);
}

TEST(Exhaustive, tries_whole_numbers_between_any_bounds) {
  MixedIntegerProgram program;
  program.add_column(1.0, -2.5, 1.5, true);
  program.add_column(3.0, -1.0, 1.0, true);
  program.add_row(-3.0, kInfinity, {{0, 2.0}, {1, 1.0}});
  const auto solution = solve_exhaustively(program, 12);
  ASSERT_TRUE(solution.ok()) << solution.status().message();
  EXPECT_EQ(solution->values, (std::vector{-1.0, -1.0}));
  EXPECT_EQ(solution->objective, -4.0);
}

TEST(Exhaustive, says_that_nothing_holds) {
  MixedIntegerProgram program;
  program.add_binary(1.0);
  program.add_binary(1.0);
  program.add_row(1.5, 1.75, {{0, 1.0}, {1, 1.0}});
  EXPECT_EQ(solve_exhaustively(program, 4)->outcome, Outcome::infeasible);
  MixedIntegerProgram between;
  between.add_column(1.0, 0.25, 0.75, true);
  EXPECT_EQ(solve_exhaustively(between, 4)->outcome, Outcome::infeasible);
}

TEST(Exhaustive, refuses_what_it_cannot_try) {
  MixedIntegerProgram program;
  for (int i = 0; i < 10; ++i) program.add_binary(1.0);
  EXPECT_TRUE(solve_exhaustively(program, 1024).ok());
  EXPECT_EQ(solve_exhaustively(program, 1023).status().message(),
            "there are more than 1023 combinations of whole values");
  program.add_column(1.0, 0.0, kInfinity, true);
  EXPECT_EQ(solve_exhaustively(program, 1 << 20).status().message(),
            "column 10: bounds 0 to inf are too far apart");
  MixedIntegerProgram continuous;
  continuous.add_column(1.0, 0.0, 1.0);
  EXPECT_EQ(solve_exhaustively(continuous, 8).status().message(),
            "column 0: is continuous, and only whole numbers can be tried");
  continuous.add_row(0.0, 1.0, {{7, 1.0}});
  EXPECT_EQ(solve_exhaustively(continuous, 8).status().message(),
            "row 0: names column 7, and there are 1 columns");
}

}  // namespace
}  // namespace recmill::solve
