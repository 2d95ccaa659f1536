// SPDX-License-Identifier: Apache-2.0
#include "store/local_store.h"

#include <utility>

#include "store/table_rows.h"

namespace recmill::store {

Result<std::unique_ptr<LocalStore>> LocalStore::create(ModelSpec model, uint64_t seed,
                                                       Communicator& communicator, Pool& pool,
                                                       StoreKernels kernels) {
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, create_tables(model, seed, communicator.rank(), communicator.ranks(), pool));
  return std::unique_ptr<LocalStore>(new LocalStore(std::move(model), std::move(tables), nullptr,
                                                    communicator, pool, std::move(kernels), {}));
}

MemoryLedger LocalStore::need(const ModelSpec& model, const ClusterSpec& cluster) const {
  return tables_need(model, cluster.devices.empty() ? 1 : static_cast<int>(cluster.devices.size()));
}

}  // namespace recmill::store
