// SPDX-License-Identifier: Apache-2.0
// Stores of tables in the memory of the ranks that train: of one rank a LocalStore, of several a
// ShardedStore.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "store/embedding_store.h"
#include "store/sharded/host_rows.h"
#include "store/sharded/sharded_options.h"
#include "store/tables/rank_tables.h"

namespace recmill::store {

/// Of this rank's `tables`. What the other arguments say concerns several ranks (ShardedStore).
std::unique_ptr<EmbeddingStore> make_table_store(std::unique_ptr<RankTables> tables,
                                                 std::unique_ptr<HostRows> host,
                                                 Communicator& communicator, ShardedOptions options,
                                                 const std::vector<bool>& owners_pool);

/// The store that needs no plan (`embedding.store = "local"`): every rank holds the shares that
/// table::shares_of() gives it. Allocates this rank's, with initial rows. Fails as
/// table::EmbeddingTable::create.
Result<std::unique_ptr<EmbeddingStore>> create_table_store(ModelSpec model, uint64_t seed,
                                                           Communicator& communicator,
                                                           ThreadPool& pool,
                                                           StoreKernels kernels = {});

}  // namespace recmill::store
