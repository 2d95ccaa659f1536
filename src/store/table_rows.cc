// SPDX-License-Identifier: Apache-2.0
#include "store/table_rows.h"

#include <algorithm>
#include <string>

namespace recmill::store {
namespace {

/// Of all tables that are smaller than a huge page.
int64_t shared_bytes(const ModelSpec& model, int rank, int ranks) {
  int64_t bytes = 0;
  for (const TableSpec& spec : model.tables) {
    const table::RowShare share(spec.rows, rank, ranks);
    bytes += table::EmbeddingTable::mapped_bytes(spec, share).shared;
  }
  return bytes;
}

}  // namespace

Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         int rank, int ranks, Pool& pool) {
  std::vector<table::EmbeddingTable> tables;
  RECMILL_ASSIGN_OR_RETURN(
      SharedPages pages,
      SharedPages::allocate(static_cast<size_t>(shared_bytes(model, rank, ranks))));
  for (const TableSpec& spec : model.tables) {
    RECMILL_ASSIGN_OR_RETURN(
        auto table, table::EmbeddingTable::create(
                        spec, seed, table::RowShare(spec.rows, rank, ranks), pool, &pages));
    tables.push_back(std::move(table));
  }
  return tables;
}

MemoryLedger tables_need(const ModelSpec& model, int ranks) {
  MemoryLedger ledger;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const TableSpec& spec : model.tables) {
      table::EmbeddingTable::need(spec, table::RowShare(spec.rows, rank, ranks), rank, ledger);
    }
  }
  return ledger;
}

Status write_table(std::vector<table::EmbeddingTable>& tables, const RowBlock& block) {
  if (block.table < 0 || block.table >= static_cast<int>(tables.size())) {
    return Status::Failed("there is no table " + std::to_string(block.table));
  }
  table::EmbeddingTable& table = tables[block.table];
  const TableSpec& spec = table.spec();
  const auto& columns = table.state();
  bool fits = block.first >= 0 && block.count >= 0 && block.first + block.count <= spec.rows &&
              static_cast<int64_t>(block.weights.size()) == block.count * spec.dim &&
              (block.state.empty() || block.state.size() == columns.size());
  for (size_t c = 0; fits && c < block.state.size(); ++c) {
    fits = static_cast<int64_t>(block.state[c].size()) == block.count * columns[c].width;
  }
  if (!fits) {
    return Status::Failed("table '" + spec.name + "' of " + std::to_string(spec.rows) + " x " +
                          std::to_string(spec.dim) + ": rows [" + std::to_string(block.first) +
                          ", " + std::to_string(block.first + block.count) +
                          ") to be written have another shape");
  }
  std::vector<std::span<const float>> state(block.state.size());
  for (int64_t i = 0; i < block.count; ++i) {
    const int64_t row = block.first + i;
    if (!table.share().owns(row)) continue;
    for (size_t c = 0; c < state.size(); ++c) {
      state[c] = block.state[c].subspan(i * columns[c].width, columns[c].width);
    }
    table.write(table.share().slot(row), 1, block.weights.subspan(i * spec.dim, spec.dim), state);
  }
  return {};
}

}  // namespace recmill::store
