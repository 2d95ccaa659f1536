// SPDX-License-Identifier: Apache-2.0
// Whole sets of tables: allocated, and written as the seam says.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/thread_pool.h"
#include "store/embedding_store.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// Where a table's rows are to be, which has no room yet.
using RoomOf = std::function<Result<table::TableRoom>(const table::EmbeddingTable&)>;

/// A rank's share of every table [tables], with initial rows. `room_of` is asked for one table
/// after the other; without it rows are in memory of their own.
Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         std::span<const table::TableShare> shares,
                                                         ThreadPool& pool,
                                                         const RoomOf& room_of = {});
/// As TableSpec::sharding says.
Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         int rank, int ranks, ThreadPool& pool);

/// Adds what create_tables() allocates on `device`.
void tables_need(const ModelSpec& model, std::span<const table::TableShare> shares, int device,
                 MemoryLedger& ledger);
/// On each of `ranks` devices, as TableSpec::sharding says.
MemoryLedger tables_need(const ModelSpec& model, int ranks);

/// What create_tables() leaves unused of the pages that it takes: huge ones leave up to 2 MiB, of a
/// large table or of all small ones.
int64_t rest_of_pages(const ModelSpec& model, std::span<const table::TableShare> shares);

/// A block of whole rows that does not fit its table is an error that names the table.
Status check_block(const ModelSpec& model, const RowBlock& block);
/// Rows [begin, end) of those of a block of `spec`'s table. `state` is memory for its columns.
RowBlock part_of(const RowBlock& block, const TableSpec& spec, int64_t begin, int64_t end,
                 std::vector<std::span<const float>>& state);
/// EmbeddingStore::write_rows: rows of other shares are ignored. Fails as check_block().
Status write_table(std::vector<table::EmbeddingTable>& tables, const RowBlock& block);

}  // namespace recmill::store
