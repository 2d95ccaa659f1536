// SPDX-License-Identifier: Apache-2.0
// The store that carries a placement plan out (OPER, section 5): each row of each table stands
// where the plan says, and each rank fetches it from where the plan says.
//
// A map of half a byte a row at most (table::RowMap), in the memory of the host, turns ids into
// addresses in prepare(), ahead of training; one lookup() serves all tables. Rows with copies are
// updated at all ranks that have one, in one of the ways of CopyReduce. Bitwise the same with every
// plan, every way, and with de-duplication or without.
#pragma once

#include <cstdint>
#include <memory>

#include "store/placed_options.h"
#include "store/table_store.h"
#include "table/placed_tables.h"

namespace recmill::store {

class PlacedStore final : public TableStore {
 public:
  /// Allocates what this rank, a device of `placed`, holds of all tables, with initial rows. As
  /// many devices as ranks. Fails as table::EmbeddingTable::create.
  static Result<std::unique_ptr<PlacedStore>> create(
      ModelSpec model, uint64_t seed, Communicator& communicator, Pool& pool,
      std::shared_ptr<const table::PlacedTables> placed, PlacedOptions options = {},
      StoreKernels kernels = {});

  /// Of the plan's devices.
  MemoryLedger need(const ModelSpec& model, const ClusterSpec& cluster) const override;

 private:
  PlacedStore(std::shared_ptr<const table::PlacedTables> placed, ModelSpec model,
              std::vector<table::EmbeddingTable> tables, Communicator& communicator, Pool& pool,
              StoreKernels kernels, PlacedOptions options);

  const std::shared_ptr<const table::PlacedTables> placed_;
  const PlacedOptions options_;
};

/// What stores of the plan's devices allocate: rows, and vectors for dense sums of copies. `placed`
/// itself stands already.
MemoryLedger placed_need(const ModelSpec& model, const table::PlacedTables& placed,
                         PlacedOptions options);

}  // namespace recmill::store
