// SPDX-License-Identifier: Apache-2.0
#include "store/placed_store.h"

#include <utility>

#include "store/table_rows.h"

namespace recmill::store {

Result<std::unique_ptr<PlacedStore>> PlacedStore::create(
    ModelSpec model, uint64_t seed, Communicator& communicator, Pool& pool,
    std::shared_ptr<const table::PlacedTables> placed, PlacedOptions options,
    StoreKernels kernels) {
  RECMILL_CHECK(placed->devices() == communicator.ranks(), std::to_string(placed->devices()));
  RECMILL_ASSIGN_OR_RETURN(auto tables,
                           create_tables(model, seed, placed->shares(communicator.rank()), pool));
  return std::unique_ptr<PlacedStore>(new PlacedStore(std::move(placed), std::move(model),
                                                      std::move(tables), communicator, pool,
                                                      std::move(kernels), options));
}

PlacedStore::PlacedStore(std::shared_ptr<const table::PlacedTables> placed, ModelSpec model,
                         std::vector<table::EmbeddingTable> tables, Communicator& communicator,
                         Pool& pool, StoreKernels kernels, PlacedOptions options)
    : TableStore(std::move(model), std::move(tables), communicator, pool, std::move(kernels),
                 options),
      placed_(std::move(placed)),
      options_(options) {}

MemoryLedger PlacedStore::need(const ModelSpec& model, const ClusterSpec& /*cluster*/) const {
  return placed_need(model, *placed_, options_);
}

MemoryLedger placed_need(const ModelSpec& model, const table::PlacedTables& placed,
                         PlacedOptions options) {
  MemoryLedger ledger;
  for (int device = 0; device < placed.devices(); ++device) {
    const auto shares = placed.shares(device);
    tables_need(model, shares, device, ledger);
    const int64_t dense = DenseReduce::bytes(model, shares);
    const bool may_be = options.reduce == CopyReduce::automatic;
    if (dense > 0 && (may_be || options.reduce == CopyReduce::dense))
      ledger.items.push_back({"sums of rows with copies", device, dense, /*certain=*/!may_be});
  }
  return ledger;
}

}  // namespace recmill::store
