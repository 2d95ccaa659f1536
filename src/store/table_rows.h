// SPDX-License-Identifier: Apache-2.0
// Whole sets of tables: allocated, and written as the seam says.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "device/pool.h"
#include "store/embedding_store.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// This rank's share of every table, with initial rows.
Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         int rank, int ranks, Pool& pool);

/// What create_tables() allocates on each of `ranks` devices.
MemoryLedger tables_need(const ModelSpec& model, int ranks);

/// EmbeddingStore::write_rows: rows of other shares are ignored. A block that does not fit its
/// table is an error that names the table.
Status write_table(std::vector<table::EmbeddingTable>& tables, const RowBlock& block);

}  // namespace recmill::store
