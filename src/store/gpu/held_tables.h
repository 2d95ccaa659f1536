// SPDX-License-Identifier: Apache-2.0
// What each rank holds of tables that are stored whole at one rank each. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "schema/table_spec.h"

namespace recmill::store {

struct HeldTables {
  std::vector<int> tables;       // ascending
  std::vector<size_t> features;  // that look them up, ascending
};

/// [ranks], by table::shares_of(). Every table is sharded by table, unless there is one rank.
std::vector<HeldTables> held_tables(const ModelSpec& model, int ranks);

/// Those tables and features alone, by their numbers among them.
ModelSpec model_of(const HeldTables& held, const ModelSpec& model);

}  // namespace recmill::store
