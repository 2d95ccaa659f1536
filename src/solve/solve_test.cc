// SPDX-License-Identifier: Apache-2.0
#include "solve/solve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "solve/exhaustive.h"
#include "solve/highs_c_api.h"
#include "solve/testing/random_programs.h"

namespace recmill::solve {
namespace {

Solution solved(const MixedIntegerProgram& program, const Limits& limits = {},
                std::span<const double> start = {}) {
  auto solution = solve(program, limits, start);
  EXPECT_TRUE(solution.ok()) << solution.status().message();
  return solution.ok() ? *solution : Solution{};
}

TEST(Solve, the_library_counts_in_32_bits) {
  void* highs = Highs_create();
  EXPECT_EQ(Highs_getSizeofHighsInt(highs), static_cast<HighsInt>(sizeof(HighsInt)));
  Highs_destroy(highs);
}

TEST(Solve, a_linear_program) {
  MixedIntegerProgram program;  // the mixture of the least cost
  program.add_column(3.0, 0.0, kInfinity);
  program.add_column(2.0, 0.5, 3.0);
  program.add_row(4.0, kInfinity, {{0, 1.0}, {1, 1.0}});
  program.add_row(-kInfinity, 2.0, {{1, 1.0}, {0, 0.0}});
  const Solution solution = solved(program);
  EXPECT_EQ(solution.outcome, Outcome::optimal);
  EXPECT_EQ(solution.values, (std::vector{2.0, 2.0}));
  EXPECT_EQ(solution.objective, 10.0);
  EXPECT_EQ(solution.dual_bound, 10.0);
  EXPECT_EQ(solution.nodes, 0);
}

TEST(Solve, integer_columns_are_whole) {
  MixedIntegerProgram program;  // 8 x + 11 y + 6 z + 4 w within 14 of 5 x + 7 y + 4 z + 3 w
  for (const double worth : {8.0, 11.0, 6.0, 4.0}) program.add_binary(-worth);
  program.add_row(-kInfinity, 14.0, {{0, 5.0}, {1, 7.0}, {2, 4.0}, {3, 3.0}});
  const Solution solution = solved(program);
  EXPECT_EQ(solution.outcome, Outcome::optimal);
  EXPECT_EQ(solution.values, (std::vector{0.0, 1.0, 1.0, 1.0}));
  EXPECT_EQ(solution.objective, -21.0);
  EXPECT_NEAR(solution.dual_bound, -21.0, kTolerance);
}

TEST(Solve, integer_and_continuous_columns_together) {
  MixedIntegerProgram program;  // a fixed charge: y <= 10 x, y >= 3
  program.add_column(5.0, 0.0, 4.0, true);
  program.add_column(1.0, -kInfinity, kInfinity);
  program.add_row(-kInfinity, 0.0, {{1, 1.0}, {0, -10.0}});
  program.add_row(3.0, kInfinity, {{1, 1.0}});
  const Solution solution = solved(program);
  EXPECT_EQ(solution.values, (std::vector{1.0, 3.0}));
  EXPECT_EQ(solution.objective, 8.0);
}

TEST(Solve, rounding_breaks_no_row) {
  MixedIntegerProgram program;  // a millionth of x would be enough for y: within HiGHS' tolerance
  program.add_column(1.0, 0.0, 1.0, true);
  program.add_column(0.0, 0.5, 1e6);
  program.add_row(-kInfinity, 0.0, {{1, 1.0}, {0, -1e6}});
  const Solution solution = solved(program);
  EXPECT_EQ(solution.values[0], 1.0);
  EXPECT_TRUE(program.check_values(solution.values).ok());
}

TEST(Solve, nothing_to_choose) {
  MixedIntegerProgram program;
  EXPECT_EQ(solved(program).outcome, Outcome::optimal);
  program.add_row(0.0, 1.0, {});
  EXPECT_EQ(solved(program).outcome, Outcome::optimal);
  program.add_row(1.0, 1.0, {});
  EXPECT_EQ(solved(program).outcome, Outcome::infeasible);
}

TEST(Solve, columns_without_rows) {
  MixedIntegerProgram program;
  program.add_column(1.0, -2.0, 7.0);
  program.add_column(-1.0, -2.0, 7.5, true);
  EXPECT_EQ(solved(program).values, (std::vector{-2.0, 7.0}));
  program.add_column(-1.0, 0.0, kInfinity);
  EXPECT_EQ(solved(program).outcome, Outcome::unbounded);
}

TEST(Solve, says_that_there_is_no_solution) {
  for (const bool integer : {false, true}) {
    MixedIntegerProgram program;
    program.add_column(1.0, 0.0, 1.0, integer);
    program.add_column(1.0, 0.0, 1.0, integer);
    program.add_row(2.5, kInfinity, {{0, 1.0}, {1, 1.0}});
    const Solution solution = solved(program);
    EXPECT_EQ(solution.outcome, Outcome::infeasible);
    EXPECT_EQ(solution.dual_bound, kInfinity);
    EXPECT_TRUE(solution.values.empty());
  }
}

TEST(Solve, says_that_no_whole_numbers_hold) {
  MixedIntegerProgram program;
  program.add_column(1.0, -kInfinity, kInfinity, true);
  program.add_column(1.0, 0.0, 10.0, true);
  program.add_row(1.0, 1.0, {{0, 2.0}, {1, 4.0}});
  EXPECT_EQ(solved(program).outcome, Outcome::infeasible);
  MixedIntegerProgram between;
  between.add_column(1.0, 0.25, 0.75, true);
  EXPECT_EQ(solved(between).outcome, Outcome::infeasible);
}

TEST(Solve, says_that_there_is_no_least_objective) {
  for (const bool integer : {false, true}) {
    MixedIntegerProgram program;
    program.add_column(-1.0, 0.0, kInfinity, integer);
    program.add_column(1.0, 0.0, kInfinity, integer);
    program.add_row(-kInfinity, 1.0, {{0, 1.0}, {1, -0.5}});
    EXPECT_EQ(solved(program).objective, -1.0);
    program.add_column(-1.0, 0.0, kInfinity, integer);
    program.add_row(0.0, kInfinity, {{0, 1.0}, {1, -1.0}, {2, 1.0}});
    const Solution solution = solved(program);
    EXPECT_EQ(solution.outcome, Outcome::unbounded);
    EXPECT_EQ(solution.objective, -kInfinity);
  }
}

TEST(Solve, an_objective_without_end_but_no_solution_is_infeasible) {
  MixedIntegerProgram program;
  program.add_column(0.0, 0.0, 10.0, true);
  program.add_column(0.0, 0.0, 10.0, true);
  program.add_column(-1.0, 0.0, kInfinity);
  program.add_row(3.0, 3.0, {{0, 2.0}, {1, 4.0}});
  EXPECT_EQ(solved(program).outcome, Outcome::infeasible);
}

TEST(Solve, equals_the_exhaustive_way_on_random_programs) {
  int infeasible = 0;
  for (uint64_t number = 0; number < 200; ++number) {
    const MixedIntegerProgram program = random_program(number);
    const auto expected = solve_exhaustively(program, int64_t{1} << 40);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const Solution solution = solved(program);
    ASSERT_STREQ(name_of(solution.outcome), name_of(expected->outcome)) << "program " << number;
    infeasible += solution.outcome == Outcome::infeasible;
    if (!solution.has_values()) continue;
    EXPECT_NEAR(solution.objective, expected->objective, kTolerance) << "program " << number;
    EXPECT_NEAR(solution.dual_bound, expected->objective, kTolerance) << "program " << number;
    EXPECT_TRUE(program.check_values(solution.values).ok()) << "program " << number;
    EXPECT_EQ(program.objective(solution.values), solution.objective);
  }
  EXPECT_GT(infeasible, 5);
  EXPECT_LT(infeasible, 50);
}

TEST(Solve, refuses_what_is_no_program_limit_or_start) {
  MixedIntegerProgram program;
  program.add_binary(1.0);
  EXPECT_EQ(solve(program, {}, std::vector{1.0, 2.0}).status().message(),
            "start: 2 values for 1 columns");
  EXPECT_EQ(solve(program, {}, std::vector{std::nan("")}).status().message(),
            "start: column 0 is nan");
  EXPECT_EQ(solve(program, {.nodes = -1}).status().message(),
            "limits: -1 nodes and 0 iterations; none may be negative");
  EXPECT_EQ(solve(program, {.relative_gap = std::nan("")}).status().message(),
            "limits: a relative gap of nan and 0 seconds; none may be negative");
  program.add_row(0.0, 1.0, {{3, 1.0}});
  EXPECT_EQ(solve(program).status().message(), "row 0: names column 3, and there are 1 columns");
}

}  // namespace
}  // namespace recmill::solve
