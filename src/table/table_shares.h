// SPDX-License-Identifier: Apache-2.0
// How a model's tables are split over ranks: each as its TableSpec::sharding says, or by a plan.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "placement_plan/placement_plan.h"
#include "schema/table_spec.h"
#include "table/table_share.h"

namespace recmill::table {

/// What `rank` of `ranks` holds of each table [tables]: a function of the specs and these alone.
///   hash       rows spread by RowShare's permutation
///   row_range  rank r holds rows [r rows / ranks, (r + 1) rows / ranks)
///   column     table t's columns in ceil(dim / 16) pieces, or one for each rank where that is
///   less,
///              from rank t mod ranks on (ColumnSplit)
///   table      one rank holds the table: tables in descending order of the bytes of their rows and
///              state, each at the rank that has the fewest bytes so far, those of the tables split
///              otherwise included; ties go to the lower table, and to the lower rank
std::vector<TableShare> shares_of(std::span<const TableSpec> tables, int rank, int ranks);

/// By table; null where columns are placed. For all ranks of a process.
using RowMaps = std::vector<std::shared_ptr<const RowMap>>;
/// Of a plan that check_plan() accepts. Fails as RowMap::create().
Result<RowMaps> row_maps(const PlacementPlan& plan);
/// What `rank` holds of each table by the plan, of which `maps` are.
std::vector<TableShare> shares_of(const PlacementPlan& plan, const RowMaps& maps,
                                  std::span<const TableSpec> tables, int rank);

}  // namespace recmill::table
