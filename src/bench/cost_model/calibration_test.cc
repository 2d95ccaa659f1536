// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/calibration.h"

#include <gtest/gtest.h>

#include <string>

#include "bench/cost_model/cost_model_cases.h"

namespace recmill::bench {
namespace {

/// Two tables on three devices, of which each row is looked up once in 100 samples.
placement::Problem small() {
  placement::Problem problem;
  for (const int64_t rows : {64, 200}) {
    placement::PlacedTable& table = problem.tables.emplace_back();
    table.spec.name = "t" + std::to_string(rows);
    table.spec.rows = rows;
    table.spec.dim = 8;
    table.row_bytes = 36;
    TableCounts& counts = problem.counts.tables.emplace_back();
    counts.table = table.spec.name;
    counts.rows = counts.lookups = counts.bags = rows;
    counts.range_lookups.assign(rows, 0);
    counts.tail_rows_by_count = {0};
    for (int64_t row = 0; row < rows; ++row) {
      counts.hot_rows.push_back(row);
      counts.hot_counts.push_back(1);
    }
  }
  problem.counts.samples = 100;
  problem.samples = 50;
  problem.cluster = placement::equal_devices(3, 1 << 20);
  for (LinkSpec& link : problem.cluster.links) link.byte_seconds *= 5e-8;
  return problem;
}

TEST(Calibration, finds_the_constants_of_runs_that_are_as_predicted) {
  const Calibration truth{1.05, 5000, 1.2, 3e-4, 2e-9, 1e-9};
  std::vector<RatedRun> runs;
  for (const auto kind : {placement::PlannerKind::table_wise, placement::PlannerKind::row_wise,
                          placement::PlannerKind::data_parallel}) {
    for (const int64_t samples : {50, 500}) {
      placement::Problem problem = small();
      problem.samples = samples;
      const PlacementPlan plan = plan_placement(problem, kind, {})->plan;
      const Prediction as_it_is = predict(problem, plan, truth);
      CaseTook took{as_it_is.sent, as_it_is.communication, as_it_is.seconds};
      runs.push_back(rate_run(problem, plan, took));
    }
  }
  const Calibration found = calibrate(runs);
  EXPECT_NEAR(found.wire_factor, truth.wire_factor, 1e-6);
  EXPECT_NEAR(found.wire_bytes, truth.wire_bytes, 1e-2);
  EXPECT_NEAR(found.link_factor, truth.link_factor, 1e-2);
  EXPECT_NEAR(found.message_seconds, truth.message_seconds, 1e-6);
  EXPECT_NEAR(found.lookup_byte_seconds, truth.lookup_byte_seconds, 1e-11);
  EXPECT_NEAR(found.batch_byte_seconds, truth.batch_byte_seconds, 1e-11);
}

TEST(CostModelCases, none_is_judged_by_work_that_constants_were_fitted_on) {
  const std::vector<CostModelCase> fitted = fitted_cases(), judged = judged_cases();
  EXPECT_EQ(fitted.size(), 8u);
  EXPECT_EQ(judged.size(), 20u);
  for (const CostModelCase& of : fitted)
    for (const CostModelCase& other : judged) {
      EXPECT_NE(of.work.shape, other.work.shape);
      EXPECT_NE(of.work.dim, other.work.dim);
      EXPECT_NE(of.work.zipf, other.work.zipf);
      EXPECT_NE(of.work.samples, other.work.samples);
      EXPECT_NE(of.work.seed, other.work.seed);
    }
}

}  // namespace
}  // namespace recmill::bench
