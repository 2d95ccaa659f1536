// SPDX-License-Identifier: Apache-2.0
#include "store/tables/table_rows.h"

#include <algorithm>
#include <span>
#include <string>

#include "table/table_shares.h"

namespace recmill::store {
namespace {

/// Of all tables that are smaller than a huge page, were their rows this rank's alone: nobody pays
/// for what is not used.
int64_t shared_bytes(const ModelSpec& model, std::span<const table::TableShare> shares) {
  int64_t bytes = 0;
  for (size_t t = 0; t < shares.size(); ++t)
    bytes += table::EmbeddingTable::mapped_bytes(model.tables[t], shares[t]).shared;
  return bytes;
}

}  // namespace

Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         std::span<const table::TableShare> shares,
                                                         ThreadPool& pool, const RoomOf& room_of) {
  std::vector<table::EmbeddingTable> tables;
  RECMILL_ASSIGN_OR_RETURN(SharedPages pages,
                           SharedPages::allocate(static_cast<size_t>(shared_bytes(model, shares))));
  for (size_t t = 0; t < shares.size(); ++t) {
    tables.push_back(table::EmbeddingTable::without_rows(model.tables[t], seed, shares[t]));
    table::TableRoom room;
    if (room_of) {
      RECMILL_ASSIGN_OR_RETURN(room, room_of(tables[t]));
    }
    RECMILL_RETURN_IF_ERROR(tables[t].allocate(&pages, room));
    tables[t].fill(pool);
  }
  return tables;
}

Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         int rank, int ranks, ThreadPool& pool) {
  return create_tables(model, seed, table::shares_of(model.tables, rank, ranks), pool);
}

void tables_need(const ModelSpec& model, std::span<const table::TableShare> shares, int device,
                 MemoryLedger& ledger) {
  for (size_t t = 0; t < shares.size(); ++t)
    table::EmbeddingTable::need(model.tables[t], shares[t], device, ledger);
}

MemoryLedger tables_need(const ModelSpec& model, int ranks) {
  MemoryLedger ledger;
  for (int rank = 0; rank < ranks; ++rank)
    tables_need(model, table::shares_of(model.tables, rank, ranks), rank, ledger);
  return ledger;
}

int64_t rest_of_pages(const ModelSpec& model, std::span<const table::TableShare> shares) {
  int64_t rest =
      static_cast<int64_t>(Buffer::mapped_bytes(static_cast<size_t>(shared_bytes(model, shares))));
  for (size_t t = 0; t < shares.size(); ++t) {
    rest += table::EmbeddingTable::mapped_bytes(model.tables[t], shares[t]).own;
    rest -= table::EmbeddingTable::bytes(model.tables[t], shares[t]);
  }
  return rest;
}

namespace {

Status no_table(int table) {
  return Status::Failed("there is no table " + std::to_string(table));
}

/// `own`: the columns that are to be written.
Status check_shape(const TableSpec& spec, ColumnRange own, const RowBlock& block) {
  const ColumnRange given = block.columns_of(spec.dim);
  const table::RowState columns = table::row_state(spec, given.count);
  bool fits = block.first >= 0 && block.count >= 0 && block.first + block.count <= spec.rows &&
              given.contains(own) && ColumnRange{0, spec.dim}.contains(given) &&
              static_cast<int64_t>(block.weights.size()) == block.count * given.count &&
              (block.state.empty() || block.state.size() == columns.size());
  for (size_t c = 0; fits && c < block.state.size(); ++c) {
    fits = static_cast<int64_t>(block.state[c].size()) == block.count * columns[c].width;
  }
  if (fits) return {};
  return Status::Failed("table '" + spec.name + "' of " + std::to_string(spec.rows) + " x " +
                        std::to_string(spec.dim) + ": rows [" + std::to_string(block.first) + ", " +
                        std::to_string(block.first + block.count) +
                        ") to be written have another shape");
}

}  // namespace

Status check_block(const ModelSpec& model, const RowBlock& block) {
  if (block.table < 0 || block.table >= std::ssize(model.tables)) return no_table(block.table);
  const TableSpec& spec = model.tables[block.table];
  return check_shape(spec, {0, spec.dim}, block);
}

RowBlock part_of(const RowBlock& block, const TableSpec& spec, int64_t begin, int64_t end,
                 std::vector<std::span<const float>>& state) {
  const ColumnRange given = block.columns_of(spec.dim);
  const table::RowState columns = table::row_state(spec, given.count);
  RowBlock part = block;
  part.first = block.first + begin;
  part.count = end - begin;
  part.weights = block.weights.subspan(begin * given.count, part.count * given.count);
  state.clear();
  for (size_t c = 0; c < block.state.size(); ++c)
    state.push_back(
        block.state[c].subspan(begin * columns[c].width, part.count * columns[c].width));
  part.state = state;
  return part;
}

Status write_table(std::vector<table::EmbeddingTable>& tables, const RowBlock& block) {
  if (block.table < 0 || block.table >= std::ssize(tables)) return no_table(block.table);
  table::EmbeddingTable& table = tables[block.table];
  const ColumnRange given = block.columns_of(table.spec().dim), own = table.columns();
  const table::RowState columns = table::row_state(table.spec(), given.count);
  RECMILL_RETURN_IF_ERROR(check_shape(table.spec(), own, block));
  std::vector<std::span<const float>> state(block.state.size());
  const auto& share = table.share();
  const int64_t end = block.first + block.count;
  const int64_t skipped = own.first - given.first;  // columns of the block
  for (int64_t row = share.next_held(block.first, end); row < end;
       row = share.next_held(row + 1, end)) {
    const int64_t i = row - block.first;
    for (size_t c = 0; c < state.size(); ++c) {
      const bool by_row = columns[c].width == 1;
      state[c] = block.state[c].subspan(i * columns[c].width + (by_row ? 0 : skipped),
                                        table.state()[c].width);
    }
    table.write(share.slot(row), 1, block.weights.subspan(i * given.count + skipped, own.count),
                state);
  }
  return {};
}

}  // namespace recmill::store
