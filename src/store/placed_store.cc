// SPDX-License-Identifier: Apache-2.0
#include "store/placed_store.h"

#include <utility>

#include "store/table_rows.h"
#include "table/row_map.h"

namespace recmill::store {
namespace {

/// A plan may list millions of rows, which the maps say again.
PlacementPlan without_rows(PlacementPlan plan) {
  for (TablePlacement& table : plan.tables) {
    table.runs = {};
    table.listed_rows = {};
    table.listed_paths = {};
  }
  return plan;
}

}  // namespace

Result<std::unique_ptr<PlacedStore>> PlacedStore::create(ModelSpec model, uint64_t seed,
                                                         Communicator& communicator, Pool& pool,
                                                         PlacementPlan plan, PlacedOptions options,
                                                         StoreKernels kernels) {
  RECMILL_RETURN_IF_ERROR(check_plan(plan, model.tables, communicator.ranks()));
  RECMILL_ASSIGN_OR_RETURN(auto maps, table::row_maps(plan));
  plan = without_rows(std::move(plan));
  const auto shares = table::shares_of(plan, maps, model.tables, communicator.rank());
  RECMILL_ASSIGN_OR_RETURN(auto tables, create_tables(model, seed, shares, pool));
  return std::unique_ptr<PlacedStore>(
      new PlacedStore(std::move(plan), std::move(maps), std::move(model), std::move(tables),
                      communicator, pool, std::move(kernels), options));
}

PlacedStore::PlacedStore(PlacementPlan plan, table::RowMaps maps, ModelSpec model,
                         std::vector<table::EmbeddingTable> tables, Communicator& communicator,
                         Pool& pool, StoreKernels kernels, PlacedOptions options)
    : TableStore(std::move(model), std::move(tables), communicator, pool, std::move(kernels),
                 options),
      plan_(std::move(plan)),
      maps_(std::move(maps)),
      options_(options) {}

MemoryLedger PlacedStore::need(const ModelSpec& model, const ClusterSpec& /*cluster*/) const {
  return placed_need(model, plan_, maps_, options_);
}

MemoryLedger placed_need(const ModelSpec& model, const PlacementPlan& plan,
                         const table::RowMaps& maps, PlacedOptions /*options*/) {
  MemoryLedger ledger;
  for (int device = 0; device < plan.devices; ++device) {
    const auto shares = table::shares_of(plan, maps, model.tables, device);
    tables_need(model, shares, device, ledger);
    for (size_t t = 0; t < maps.size(); ++t) {
      if (shares[t].rows.map() != nullptr)
        ledger.items.push_back(
            {"table " + model.tables[t].name + ": map of its rows", device, maps[t]->bytes()});
    }
  }
  return ledger;
}

}  // namespace recmill::store
