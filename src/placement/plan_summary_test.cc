// SPDX-License-Identifier: Apache-2.0
#include "placement/plan_summary.h"

#include <gmock/gmock.h>

namespace recmill::placement {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PlannedWay way(PlannerKind kind, double milliseconds, double memory = 1.0) {
  PlannedWay way;
  way.kind = kind;
  way.rating.seconds = milliseconds * 1e-3;
  way.rating.devices.resize(1);
  way.rating.devices[0].memory = memory;
  way.rating.devices[0].memory_limit = 10.0;
  return way;
}

}  // namespace

TEST(Recommendation, is_the_plan_that_takes_least_of_those_that_fit) {
  const std::vector<PlannedWay> ways{way(PlannerKind::table_wise, 2.0),
                                     way(PlannerKind::row_wise, 0.5, 11.0),
                                     way(PlannerKind::oper, 1.0), way(PlannerKind::milp, 1.25)};
  EXPECT_EQ(recommendation(ways),
            "use oper: 1 ms a batch on the slowest device, predicted, 20 % less than milp, the "
            "next best");
}

TEST(Recommendation, of_plans_alike_is_the_first_and_of_none_that_fits_is_none) {
  EXPECT_EQ(recommendation({way(PlannerKind::table_wise, 1.005), way(PlannerKind::oper, 1.0)}),
            "use table_wise: 1 ms a batch on the slowest device, predicted, as with oper; no "
            "other plan that fits differs by 1 %");
  EXPECT_EQ(recommendation({way(PlannerKind::table_wise, 2.0), way(PlannerKind::row_wise, 1.0),
                            way(PlannerKind::milp, 1.0), way(PlannerKind::oper, 1.0)}),
            "use row_wise: 1 ms a batch on the slowest device, predicted, as with milp, oper, 50 % "
            "less than table_wise, the next best");
  PlannedWay refused = way(PlannerKind::oper, 1.0);
  refused.refused = "no counts";
  EXPECT_EQ(recommendation({refused, way(PlannerKind::milp, 1.0, 11.0)}), "");
}

TEST(TableOf, columns_never_run_together) {
  PlannedWay of = way(PlannerKind::table_wise, 0.03279);
  of.rating.memory = of.rating.lookups =
      of.rating.communication = {.largest = 123.456789e6, .smallest = 100e6, .mean = 111.2222e6};
  of.rating.pair_bytes = {.largest = 0.03279e6, .smallest = 0.0281e6, .mean = 0.03279e6};
  EXPECT_THAT(table_of({of}), Not(HasSubstr("%0")));
  EXPECT_THAT(table_of({of}), HasSubstr(" % "));
}

}  // namespace recmill::placement
