// SPDX-License-Identifier: Apache-2.0
// Rows of tables on their way into a part of a checkpoint, at ranks and at embedding servers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/writer.h"
#include "schema/table_spec.h"
#include "table/row_block.h"

namespace recmill::train {

/// What `rows` has. Where it knows which rows were touched the others are left out, and the part
/// says what makes them from `seed`.
Status add_rows(std::span<const TableSpec> tables, uint64_t seed, table::RowSnapshot& rows,
                checkpoint::PartWriter& part);
/// Says what makes rows that nobody has changed.
Status add_rules(std::span<const TableSpec> tables, uint64_t seed, checkpoint::PartWriter& part);

/// A part in `folder` of rows alone, as checkpoint::encode() says it. Leaves no file where it
/// fails.
Result<std::string> write_row_part(Files& files, const std::string& folder, int number,
                                   std::span<const TableSpec> tables, uint64_t seed,
                                   table::RowSnapshot& rows);

}  // namespace recmill::train
