// SPDX-License-Identifier: Apache-2.0
#include "store/tables/local_store.h"

#include <utility>

#include "store/tables/table_rows.h"

namespace recmill::store {

Result<std::unique_ptr<LocalStore>> LocalStore::create(ModelSpec model, uint64_t seed,
                                                       Communicator& communicator, ThreadPool& pool,
                                                       StoreKernels kernels) {
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, create_tables(model, seed, communicator.rank(), communicator.ranks(), pool));
  return std::unique_ptr<LocalStore>(new LocalStore(std::move(model), std::move(tables), nullptr,
                                                    communicator, pool, std::move(kernels), {}));
}

}  // namespace recmill::store
