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

#include "placement_plan/placement_plan.h"
#include "store/placed_options.h"
#include "store/table_store.h"
#include "table/table_shares.h"

namespace recmill::store {

class PlacedStore final : public TableStore {
 public:
  /// Allocates what this rank, a device of the plan, holds of all tables, with initial rows. A plan
  /// that check_plan() refuses is a bad request; fails else as table::EmbeddingTable::create and
  /// table::RowMap::create.
  static Result<std::unique_ptr<PlacedStore>> create(ModelSpec model, uint64_t seed,
                                                     Communicator& communicator, Pool& pool,
                                                     PlacementPlan plan, PlacedOptions options = {},
                                                     StoreKernels kernels = {});

  /// Of the plan's devices, the map and what a dense sum over copies takes included.
  MemoryLedger need(const ModelSpec& model, const ClusterSpec& cluster) const override;

 private:
  PlacedStore(PlacementPlan plan, table::RowMaps maps, ModelSpec model,
              std::vector<table::EmbeddingTable> tables, Communicator& communicator, Pool& pool,
              StoreKernels kernels, PlacedOptions options);

  const PlacementPlan plan_;
  const table::RowMaps maps_;
  const PlacedOptions options_;
};

/// PlacedStore::need() of a plan and its maps.
MemoryLedger placed_need(const ModelSpec& model, const PlacementPlan& plan,
                         const table::RowMaps& maps, PlacedOptions options);

}  // namespace recmill::store
