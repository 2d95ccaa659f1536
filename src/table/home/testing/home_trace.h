// SPDX-License-Identifier: Apache-2.0
// Random work for homes: writers that take rows, change them, put them back, and cut, a function of
// a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/thread_pool.h"
#include "schema/table_spec.h"
#include "table/embedding_table.h"
#include "table/home/row_home.h"

namespace recmill::table::testing {

/// Every optimizer, and none, in every precision, at dimensions 1 to 1024; a few rows each.
std::vector<TableSpec> home_tables();
/// Them with their initial rows, whole.
std::vector<EmbeddingTable> tables_of(const std::vector<TableSpec>& specs, uint64_t seed,
                                      ThreadPool& pool);

/// The writers of a home.
using WriterOf = std::function<RowHome&(int)>;

struct HomeTrace {
  std::vector<TableSpec> specs = home_tables();
  uint64_t seed = 1;  // of rows and of what is done
  int writers = 1;
  int actions = 400;
};

/// Lets the writers of a home of tables_of(specs, seed) and those of a plain one do the same: what
/// one fetches nobody else puts until it has put it, as a store would. Images are read while work
/// goes on, later, or not at all. The first difference in words, "" when there is none.
std::string difference_from_plain(const HomeTrace& trace, const WriterOf& writer);

}  // namespace recmill::table::testing
