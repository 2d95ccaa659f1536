// SPDX-License-Identifier: Apache-2.0
#include "store/table_store.h"

#include <utility>

#include "store/sharded/sharded_store.h"
#include "store/tables/local_store.h"
#include "store/tables/table_rows.h"

namespace recmill::store {

std::unique_ptr<EmbeddingStore> make_table_store(std::unique_ptr<RankTables> tables,
                                                 std::unique_ptr<HostRows> host,
                                                 Communicator& communicator, ShardedOptions options,
                                                 const std::vector<bool>& owners_pool) {
  if (communicator.ranks() == 1) return std::make_unique<LocalStore>(std::move(tables));
  return std::make_unique<ShardedStore>(std::move(tables), std::move(host), communicator, options,
                                        owners_pool);
}

Result<std::unique_ptr<EmbeddingStore>> create_table_store(ModelSpec model, uint64_t seed,
                                                           Communicator& communicator,
                                                           ThreadPool& pool, StoreKernels kernels) {
  RECMILL_ASSIGN_OR_RETURN(
      auto shares, create_tables(model, seed, communicator.rank(), communicator.ranks(), pool));
  auto tables =
      std::make_unique<RankTables>(std::move(model), std::move(shares), pool, std::move(kernels));
  return make_table_store(std::move(tables), nullptr, communicator, {}, {});
}

}  // namespace recmill::store
