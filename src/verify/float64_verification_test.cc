// SPDX-License-Identifier: Apache-2.0
#include "verify/float64_verification.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json/json.h"
#include "kernels/dense_layer/dense_layer.h"

namespace recmill::train {
namespace {

RunOptions small_run() {
  RunOptions options;
  options.name = "small";
  options.data.format = DataFormat::synthetic;
  options.data.synthetic.rows = 2000;
  options.data.synthetic.cardinality_scale = 0.001;
  options.embedding.dim = 4;
  options.embedding.rows = {100};
  options.model.bottom = {8, 4};
  options.model.top = {8, 1};
  options.train.batch_size = 64;
  options.train.iterations = 10;
  options.train.slices = 4;
  options.train.threads = 1;
  return options;
}

double worst_ratio(const RunOptions& options, const RunOptions& configured) {
  const auto comparison = float64_distances(options, configured, posix_files());
  EXPECT_TRUE(comparison.ok()) << comparison.status().message();
  if (!comparison.ok()) return -1.0;
  EXPECT_EQ(comparison->iterations, 10);
  EXPECT_EQ(comparison->distances.size(), 26u + 8u);
  double worst = 0.0;
  for (const Float64Distance& d : comparison->distances) worst = std::max(worst, d.ratio());
  return worst;
}

}  // namespace

TEST(Float64Verification, a_run_of_another_order_of_summation_is_as_near_as_the_plain_one) {
  RunOptions other = small_run();
  other.train.slices = 1;
  const double worst = worst_ratio(small_run(), other);
  EXPECT_GT(worst, 0.0);
  EXPECT_LE(worst, kMostOverPlain);
}

TEST(Float64Verification, another_learning_rate_is_far_off) {
  RunOptions other = small_run();
  other.optimizer.learning_rate *= 1.01;
  EXPECT_GT(worst_ratio(small_run(), other), kMostOverPlain) << "dense learning rate";
  other = small_run();
  other.embedding.optimizer.learning_rate *= 1.01;
  EXPECT_GT(worst_ratio(small_run(), other), kMostOverPlain) << "rows' learning rate";
}

TEST(Float64Verification, another_precision_is_far_off) {
  if (!kernels::dense_layer::multiplies_bfloat16())
    GTEST_SKIP() << "this machine multiplies no bfloat16";
  RunOptions other = small_run();
  other.model.precision = model::LayerPrecision::bfloat16;
  EXPECT_GT(worst_ratio(small_run(), other), kMostOverPlain);
}

TEST(Float64Verification, takes_one_rounded_element_where_the_plain_run_is_nearer) {
  const Float64Distance untouched{"table a", 100, 0.0, 0.0};
  EXPECT_EQ(untouched.ratio(), 0.0);
  const Float64Distance one_element{"table a", 100, std::ldexp(1.0, -24) / 10.0, 0.0};
  EXPECT_DOUBLE_EQ(one_element.ratio(), 1.0);
  const Float64Distance far{"table a", 100, 6e-6, 1e-6};
  EXPECT_DOUBLE_EQ(far.ratio(), 6.0);
}

TEST(Float64Verification, knows_the_formulas_of_mlp) {
  RunOptions options = small_run();
  options.model.kind = model::ModelKind::mlp;
  options.model.bottom = {};
  const auto result = verify_against_float64(options, 5, posix_files(), [](const std::string&) {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)["distances"].size(), 26u + 4u);
  EXPECT_LE((*result)["worst_ratio"].get<double>(), kMostOverPlain);
}

TEST(Float64Verification, knows_l2_and_the_correction_by_row) {
  RunOptions options = small_run();
  options.embedding.optimizer.kind = OptimizerKind::adam;
  options.embedding.optimizer.correction = BiasCorrection::row;
  options.embedding.optimizer.l2 = 0.1;
  EXPECT_LE(worst_ratio(options, options), kMostOverPlain);
  RunOptions other = options;
  other.embedding.optimizer.l2 = 0.09;
  EXPECT_GT(worst_ratio(options, other), kMostOverPlain) << "L2";
  other = options;
  other.embedding.optimizer.correction = BiasCorrection::global;
  EXPECT_GT(worst_ratio(options, other), kMostOverPlain) << "correction";
}

TEST(Float64Verification, reports_every_table_and_layer_and_what_was_trained) {
  const auto result = verify_against_float64(
      small_run(), 5, posix_files(), [](const std::string& line) { ADD_FAILURE() << line; });
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)["iterations"], 5);
  EXPECT_EQ((*result)["distances"].size(), 26u + 8u);
  EXPECT_LE((*result)["worst_ratio"].get<double>(), kMostOverPlain);
}

}  // namespace recmill::train
