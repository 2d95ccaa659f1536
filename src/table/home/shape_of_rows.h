// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/json_fwd.h"
#include "schema/table_spec.h"

namespace recmill::table {

/// What says how a table's records are laid out and how its initial rows are made.
Json shape_of_rows(const TableSpec& table);

}  // namespace recmill::table
