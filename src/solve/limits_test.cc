// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "solve/solve.h"
#include "solve/testing/random_programs.h"

namespace recmill::solve {
namespace {

Solution solved(const MixedIntegerProgram& program, const Limits& limits = {},
                std::span<const double> start = {}) {
  auto solution = solve(program, limits, start);
  EXPECT_TRUE(solution.ok()) << solution.status().message();
  return solution.ok() ? *solution : Solution{};
}

/// One that takes a search of many nodes.
MixedIntegerProgram hard_program() {
  return assignment(random_loads(Random(6, Purpose::test), 20, 1000), 4, false);
}

TEST(Limits, the_same_program_gives_the_same_bits) {
  const MixedIntegerProgram program = hard_program();
  const Limits limits{.nodes = 300};
  const Solution first = solved(program, limits);
  EXPECT_GT(first.nodes, 100);
  for (uint64_t number = 0; number < 9; ++number) solved(random_program(number));
  EXPECT_EQ(solved(program, limits), first);
  Solution beside[2];
  std::thread threads[2];
  for (int i = 0; i < 2; ++i)
    threads[i] = std::thread([&, i] { beside[i] = solved(program, limits); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(beside[0], first);
  EXPECT_EQ(beside[1], first);
}

TEST(Limits, a_limit_of_nodes_leaves_a_solution_and_a_bound_around_the_optimum) {
  const auto loads = random_loads(Random(9, Purpose::test), 14, 1000);
  const MixedIntegerProgram program = assignment(loads, 3, false);
  const Solution best = solved(program);
  ASSERT_EQ(best.outcome, Outcome::optimal);
  ASSERT_GT(best.nodes, 50);
  for (const int64_t nodes : {int64_t{1}, int64_t{10}, int64_t{40}}) {
    const Solution solution = solved(program, {.nodes = nodes});
    EXPECT_EQ(solution.outcome, Outcome::limit_reached_with_solution);
    EXPECT_LE(solution.nodes, nodes);
    EXPECT_TRUE(program.check_values(solution.values).ok());
    EXPECT_GE(solution.objective, best.objective - kTolerance);
    EXPECT_LE(solution.dual_bound, best.objective + kTolerance);
    EXPECT_GT(solution.dual_bound, 0.0);
  }
}

TEST(Limits, a_limit_of_iterations_ends_a_search_at_the_same_place) {
  const MixedIntegerProgram program = hard_program();
  const Solution solution = solved(program, {.iterations = 1000});
  EXPECT_EQ(solution.outcome, Outcome::limit_reached_with_solution);
  EXPECT_GE(solution.iterations, 1000);
  EXPECT_LT(solution.iterations, 3000);
  EXPECT_LT(solution.dual_bound, solution.objective);
  EXPECT_EQ(solved(program, {.iterations = 1000}), solution);
}

TEST(Limits, a_limit_of_iterations_ends_a_linear_program) {
  MixedIntegerProgram program;  // each column has another neighbour to outweigh
  for (int64_t c = 0; c < 40; ++c) program.add_column(1.0 + c % 7, 0.0, kInfinity);
  for (int64_t c = 0; c < 40; ++c)
    program.add_row(1.0 + c % 5, kInfinity,
                    {{c, 2.0}, {(c * 7 + 1) % 40, 1.0}, {(c * 9 + 2) % 40, 1.5}});
  const Solution best = solved(program);
  ASSERT_EQ(best.outcome, Outcome::optimal);
  ASSERT_GT(best.iterations, 5);
  const Solution solution = solved(program, {.iterations = 2});
  EXPECT_EQ(solution.outcome, Outcome::limit_reached_without);
  EXPECT_TRUE(solution.values.empty());
  EXPECT_LE(solution.dual_bound, best.objective);
}

TEST(Limits, a_limit_of_time_ends_a_search) {
  const Solution solution = solved(hard_program(), {.seconds = 1e-3});
  EXPECT_TRUE(solution.outcome == Outcome::limit_reached_with_solution ||
              solution.outcome == Outcome::limit_reached_without);
}

TEST(Limits, a_gap_is_kept) {
  const MixedIntegerProgram program = hard_program();
  const Solution solution = solved(program, {.relative_gap = 0.1});
  EXPECT_EQ(solution.outcome, Outcome::optimal);
  EXPECT_LE(solution.objective - solution.dual_bound, 0.1 * solution.objective);
}

TEST(Limits, goes_on_from_a_start) {
  const auto loads = random_loads(Random(9, Purpose::test), 14, 1000);
  const MixedIntegerProgram program = assignment(loads, 3, false);
  const Solution best = solved(program);
  ASSERT_GT(solved(program, {.nodes = 1}).objective, best.objective + 0.5);
  const Solution again = solved(program, {.nodes = 1}, best.values);
  EXPECT_TRUE(again.has_values());
  EXPECT_NEAR(again.objective, best.objective, kTolerance);
}

TEST(Limits, a_start_that_is_no_solution_does_no_harm) {
  const MixedIntegerProgram program = random_program(2);
  const Solution best = solved(program);
  const std::vector<double> nowhere(program.columns().size(), 0.5);
  EXPECT_NEAR(solved(program, {}, nowhere).objective, best.objective, kTolerance);
  MixedIntegerProgram linear;
  linear.add_column(1.0, 0.0, 4.0);
  linear.add_row(1.0, kInfinity, {{0, 2.0}});
  EXPECT_EQ(solved(linear, {}, std::vector{3.0}).values, std::vector{0.5});
}

TEST(Limits, one_thread_is_all_that_there_is) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  solved(random_program(0));
  const auto before = threads();
  solved(hard_program(), {.nodes = 100});
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace recmill::solve
