// SPDX-License-Identifier: Apache-2.0
#include "store/cached/slots.h"

#include <cstring>
#include <utility>

namespace recmill::store {
namespace {

/// [slot tables]
std::vector<int64_t> slots_of_rank(const SlotTables& tables, const RankTables& inner) {
  std::vector<int64_t> slots;
  for (int k = 0; k < tables.count(); ++k)
    slots.push_back(inner.tables[tables.first_table(k)].share().slots());
  return slots;
}

}  // namespace

ModelSpec Slots::inner_model(const ModelSpec& model, const SlotTables& tables,
                             std::span<const int64_t> slots) {
  ModelSpec inner = model;
  for (size_t t = 0; t < inner.tables.size(); ++t) {
    inner.tables[t].name = "slots of " + inner.tables[t].name;
    inner.tables[t].rows = slots[tables.slot_table_of(static_cast<int>(t))];
  }
  for (FeatureSpec& feature : inner.features) feature.same_ids_as = -1;  // its slots are its own
  return inner;
}

std::vector<table::EmbeddingTable> Slots::inner_tables(const ModelSpec& inner, uint64_t seed,
                                                       std::span<const table::TableShare> shares) {
  std::vector<table::EmbeddingTable> made;
  for (size_t t = 0; t < inner.tables.size(); ++t)
    made.push_back(table::EmbeddingTable::without_rows(inner.tables[t], seed, shares[t]));
  return made;
}

std::vector<int> Slots::memory_of(const SlotTables& tables) {
  std::vector<int> first;
  for (int t = 0; t < tables.tables(); ++t)
    first.push_back(tables.first_table(tables.slot_table_of(t)));
  return first;
}

Status Slots::allocate(const SlotTables& tables, std::span<table::EmbeddingTable> inner,
                       HostRows* host) {
  const std::vector<int> first = memory_of(tables);
  for (size_t t = 0; t < inner.size(); ++t) {
    table::TableRoom room;
    if (host != nullptr) {
      RECMILL_ASSIGN_OR_RETURN(room.records, host->allocate(t));
    }
    const auto& shared = inner[first[t]];
    if (static_cast<size_t>(first[t]) < t) room = {shared.rows().data, shared.rows().row_state};
    RECMILL_RETURN_IF_ERROR(inner[t].allocate(nullptr, room));
  }
  return {};
}

Slots::Slots(const ModelSpec& model, const SlotTables& tables, uint64_t seed, RankTables& inner,
             std::vector<int64_t> copied)
    : SlotStates(model, tables, seed, slots_of_rank(tables, inner), std::move(copied),
                 inner.tables[0].share().rank()),
      inner_(inner) {
  for (int k = 0; k < tables.count(); ++k)
    records_.emplace_back(inner.tables[tables.first_table(k)].spec());
  for (int t = 0; t < tables.tables(); ++t) inner.names.push_back(&names(tables.slot_table_of(t)));
}

void Slots::fill(const RowInSlot& row, const std::byte* record, bool updated) {
  SlotStates::fill(row);
  write(row, record, updated);
}

void Slots::write(const RowInSlot& row, const std::byte* record, bool updated) {
  const int k = slot_table_of(row);
  check_full(row);
  records_[k].unpack(record, storage(k), place(row));
  if (updated) note_updated(row);
}

void Slots::copy_out(const RowInSlot& row, std::byte* record) const {
  const int k = slot_table_of(row);
  check_full(row);
  records_[k].pack(storage(k), place(row), record);
}

void Slots::copy_weights(const RowInSlot& row, std::byte* weights) const {
  const int k = slot_table_of(row);
  check_full(row);
  std::memcpy(weights, storage(k).record(place(row)),
              static_cast<size_t>(records_[k].weight_bytes()));
}

}  // namespace recmill::store
