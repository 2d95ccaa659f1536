// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/row_part.h"

#include <memory>
#include <vector>

#include "run/checkpoint/checkpoint_entries.h"
#include "table/optimizers/row_state.h"

namespace recmill::train {
namespace {

using checkpoint::PartWriter;
using table::RowBlock;

// `columns`: those of the entry that `bytes` has.
Status add_column(const checkpoint::EntrySpec& entry, const RowBlock& block, ColumnRange columns,
                  std::span<const std::byte> bytes, PartWriter& part) {
  return block.listed.empty() ? part.add(entry, block.first, bytes, columns)
                              : part.add(entry, block.listed, bytes);
}

Status add_block(const TableSpec& table, const RowBlock& block, PartWriter& part) {
  const ColumnRange own = block.columns_of(table.dim);
  if (table.precision == RowPrecision::float32) {
    RECMILL_RETURN_IF_ERROR(
        add_column(weight_entry(table), block, own, std::as_bytes(block.weights), part));
  } else {
    const auto bits = narrow(block.weights, table.precision);
    RECMILL_RETURN_IF_ERROR(
        add_column(weight_entry(table), block, own, std::as_bytes(std::span(bits)), part));
  }
  const table::RowState columns = table::row_state(table);
  for (size_t c = 0; c < columns.size(); ++c) {
    const ColumnRange of_state = ColumnRange{0, columns[c].width}.common(own);
    if (of_state.count == 0) continue;  // by row: whoever has column 0 has it
    RECMILL_RETURN_IF_ERROR(add_column(state_entry(table, columns[c]), block, of_state,
                                       std::as_bytes(block.state[c]), part));
  }
  return {};
}

}  // namespace

Status add_rules(std::span<const TableSpec> tables, uint64_t seed, PartWriter& part) {
  for (const TableSpec& table : tables) {
    RECMILL_RETURN_IF_ERROR(part.add_rule(weight_entry(table), weight_rule(table, seed)));
    for (const table::StateColumn& column : table::row_state(table))
      RECMILL_RETURN_IF_ERROR(part.add_rule(state_entry(table, column), state_rule(column)));
  }
  return {};
}

Status add_rows(std::span<const TableSpec> tables, uint64_t seed, table::RowSnapshot& rows,
                PartWriter& part) {
  if (rows.knows_touched()) RECMILL_RETURN_IF_ERROR(add_rules(tables, seed, part));
  return rows.read_touched([&](const RowBlock& block) {
    return add_block(tables[static_cast<size_t>(block.table)], block, part);
  });
}

Result<std::string> write_row_part(Files& files, const std::string& folder, int number,
                                   std::span<const TableSpec> tables, uint64_t seed,
                                   table::RowSnapshot& rows) {
  RECMILL_ASSIGN_OR_RETURN(auto part, PartWriter::create(files, folder, number));
  Status status = add_rows(tables, seed, rows, *part);
  if (status.ok()) {
    const auto contents = part->finish();
    if (contents.ok()) return checkpoint::encode(*contents);
    status = contents.status();
  }
  part.reset();
  (void)files.remove(folder + "/" + PartWriter::name_of(number)).ok();
  return status;
}

}  // namespace recmill::train
