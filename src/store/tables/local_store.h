// SPDX-License-Identifier: Apache-2.0
// The store that needs no plan: every rank holds the shares that table::shares_of() gives it.
#pragma once

#include <cstdint>
#include <memory>

#include "store/tables/table_store.h"

namespace recmill::store {

class LocalStore final : public TableStore {
 public:
  /// Allocates this rank's share of all tables with their initial rows. Fails as
  /// table::EmbeddingTable::create.
  static Result<std::unique_ptr<LocalStore>> create(ModelSpec model, uint64_t seed,
                                                    Communicator& communicator, ThreadPool& pool,
                                                    StoreKernels kernels = {});

  /// One device a rank: as many as `cluster` has.

 private:
  using TableStore::TableStore;
};

}  // namespace recmill::store
