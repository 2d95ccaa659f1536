// SPDX-License-Identifier: Apache-2.0
// How a model's tables are split over ranks: each as its TableSpec::sharding says.
#pragma once

#include <span>
#include <vector>

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

}  // namespace recmill::table
