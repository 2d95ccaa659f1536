// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace recmill::bench {
namespace {

using Values = std::vector<double>;
using Terms = std::vector<std::vector<double>>;

TEST(Spearman, goes_by_order_alone) {
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3, 4}, Values{10, 100, 1000, 10000}), 1);
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3, 4}, Values{4, 3, 2, 1}), -1);
  // 1 - 6 * (sum of squared differences of ranks) / (n * (n * n - 1)).
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3, 4, 5}, Values{2, 1, 4, 3, 5}), 1 - 6.0 * 4 / (5 * 24));
}

TEST(Spearman, equal_values_share_their_ranks) {
  // Ranks 0, 1.5, 1.5, 3 beside 0, 1, 2, 3.
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5));
  EXPECT_EQ(spearman(Values{7, 7, 7}, Values{1, 2, 3}), 0);
}

TEST(RelativeError, is_of_what_was_measured) {
  EXPECT_DOUBLE_EQ(relative_error(90, 100), 0.1);
  EXPECT_DOUBLE_EQ(relative_error(125, 100), 0.25);
}

TEST(FitCosts, finds_the_factors_that_made_the_values) {
  const Terms terms{{1e6, 1, 0}, {5e6, 1, 1}, {2e7, 1, 0}, {3e5, 1, 4}};
  Values values;
  for (const auto& term : terms) values.push_back(4e-8 * term[0] + 0.003 * term[1] + term[2]);
  const Values factors = fit_costs(terms, values);
  EXPECT_NEAR(factors[0], 4e-8, 1e-16);
  EXPECT_NEAR(factors[1], 0.003, 1e-11);
  EXPECT_NEAR(factors[2], 1, 1e-9);
}

TEST(FitCosts, weighs_errors_by_what_they_are_errors_of) {
  // The factor f of 1 f ~ 1 and 100 f ~ 200: (f - 1)^2 + (f / 2 - 1)^2 is least at 1.2.
  EXPECT_NEAR(fit_costs(Terms{{1}, {100}}, Values{1, 200})[0], 1.2, 1e-12);
}

TEST(FitCosts, has_no_factor_below_0_and_none_that_others_make_up) {
  const Values factors = fit_costs(Terms{{1, 1}, {2, 1}, {3, 1}}, Values{1, 3, 5});  // 2 x - 1
  EXPECT_EQ(factors[1], 0);
  EXPECT_NEAR(factors[0], fit_costs(Terms{{1}, {2}, {3}}, Values{1, 3, 5})[0], 1e-12);
  const Values twice = fit_costs(Terms{{1, 2}, {3, 6}, {4, 8}}, Values{2, 6, 8});
  EXPECT_NEAR(twice[0] + 2 * twice[1], 2, 1e-9);
  EXPECT_EQ(fit_costs(Terms{{0}, {0}}, Values{1, 2})[0], 0);
}

}  // namespace
}  // namespace recmill::bench
