// SPDX-License-Identifier: Apache-2.0
// How uneven the accesses of a table are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "schema/access_counts.h"
#include "stats/hot_threshold.h"

namespace recmill::stats {

struct TableShares {
  std::string table;
  int64_t rows = 0, lookups = 0;
  int64_t touched = 0;     // rows with a lookup
  int64_t undercount = 0;  // TableCounts::undercount; above 0, what follows is estimated
  // Share of the lookups that the hottest 0.1 %, 1 % and 5 % of all rows take, rounded up.
  double top_0_1_percent = 0, top_1_percent = 0, top_5_percent = 0;
};

/// Rows by their count, ascending, those of 0 lookups left out.
std::vector<CountHistogram::Rows> rows_by_count(const TableCounts& table);
/// Share of the table's lookups that its `hottest` hottest rows take.
double share_of(int64_t hottest, const std::vector<CountHistogram::Rows>& rows, int64_t lookups);

std::vector<TableShares> shares_of(const AccessCounts& counts);
Json to_json(const std::vector<TableShares>& shares);
/// A line a table.
std::string table_of(const std::vector<TableShares>& shares);

}  // namespace recmill::stats
