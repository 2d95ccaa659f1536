// SPDX-License-Identifier: Apache-2.0
#include "store/cached/host_slot_store.h"

#include <utility>

namespace recmill::store {

std::vector<int64_t> HostSlotStore::slot_bytes(const ModelSpec& model, const SlotTables& tables) {
  std::vector<int64_t> bytes;
  for (int k = 0; k < tables.count(); ++k) {
    TableSpec one = model.tables[tables.first_table(k)];
    one.rows = 1;
    bytes.push_back(table::EmbeddingTable::bytes(one, table::RowShare(1, 0, 1)) +
                    SlotStates::kBytesOfSlot);
  }
  return bytes;
}

MakeSlots HostSlotStore::maker(uint64_t seed, ThreadPool& pool, StoreKernels kernels) {
  return [=, &pool](const ModelSpec& model, const SlotTables& tables, const CacheSize& size) {
    return create(model, tables, seed, size, pool, kernels);
  };
}

Result<std::unique_ptr<SlotStore>> HostSlotStore::create(const ModelSpec& model,
                                                         const SlotTables& tables, uint64_t seed,
                                                         const CacheSize& size, ThreadPool& pool,
                                                         StoreKernels kernels) {
  kernels.row_update.clear();
  ModelSpec inner = Slots::inner_model(model, tables, size.slots);
  std::vector<table::TableShare> shares;
  for (const TableSpec& table : inner.tables)
    shares.emplace_back(table::RowShare(table.rows, 0, 1));
  auto rooms = Slots::inner_tables(inner, seed, shares);
  RECMILL_RETURN_IF_ERROR(Slots::allocate(tables, rooms));
  auto of =
      std::make_unique<RankTables>(std::move(inner), std::move(rooms), pool, std::move(kernels));
  auto slots = std::make_unique<Slots>(model, tables, seed, *of);
  return std::unique_ptr<SlotStore>(new HostSlotStore(std::move(of), std::move(slots)));
}

Status HostSlotStore::fill(int64_t, std::span<const RowInSlot> rows, const RowRecords& records) {
  for (size_t i = 0; i < rows.size(); ++i) slots_->fill(rows[i], records.record(i));
  return {};
}

Status HostSlotStore::read(std::span<const RowInSlot> rows, RowRecords& records) {
  for (size_t i = 0; i < rows.size(); ++i) slots_->copy_out(rows[i], records.record(i));
  return {};
}

Status HostSlotStore::write(std::span<const RowInSlot> rows, const RowRecords& records) {
  for (size_t i = 0; i < rows.size(); ++i) slots_->write(rows[i], records.record(i));
  return {};
}

}  // namespace recmill::store
