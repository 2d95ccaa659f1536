// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/host_rows.h"

#include <algorithm>
#include <cstring>

#include "device/buffer.h"
#include "store/tables/table_rows.h"

namespace recmill::store {
namespace {

constexpr int64_t kLine = 64;
enum Fence : uint64_t { kBegin = 1, kEnd = 2 };

}  // namespace

HostRows::HostRows(const ModelSpec& model, std::span<const table::TableShare> shares,
                   Communicator& communicator, std::span<const int> memory_of)
    : communicator_(communicator), tables_(shares.size()) {
  small_bytes_ = communicator.ranks() * kLine;
  for (size_t t = 0; t < shares.size(); ++t) {
    if (shares[t].columns.is_split()) continue;
    Table& table = tables_[t];
    const table::RowShare& share = shares[t].rows;
    table.is_shared = true;
    table.name = model.tables[t].name;
    table.share = share;
    table.rows = table::EmbeddingTable::layout(model.tables[t], shares[t]);
    table.firsts.assign(1, 0);
    for (int rank = 0; rank < share.ranks(); ++rank)
      table.firsts.push_back(table.firsts.back() + share.slots_of(rank));
    table.rows.count = table.firsts.back();
    for (int group = 0; share.map() != nullptr && group < share.map()->groups(); ++group) {
      const auto [rank, slot] = share.map()->source({group, 0}, share.rank());
      table.sources.push_back(table.firsts[rank] + slot);
    }
    if (!memory_of.empty() && memory_of[t] != static_cast<int>(t)) {
      table.memory_of = memory_of[t];
      continue;
    }
    const size_t room =
        SharedPages::room_of(static_cast<size_t>(table.rows.count * table.rows.stride));
    if (room == 0) continue;
    table.offset = small_bytes_;
    small_bytes_ += static_cast<int64_t>(room);
  }
}

bool HostRows::has_all() const {
  return std::ranges::all_of(tables_, &Table::is_shared);
}

// As many bytes as are wanted, over all ranks.
Result<std::unique_ptr<Window>> HostRows::window(int64_t bytes) {
  const int64_t of_rank = (bytes + communicator_.ranks() - 1) / communicator_.ranks();
  return communicator_.window(static_cast<size_t>((of_rank + kLine - 1) / kLine * kLine));
}

Status HostRows::open() {
  RECMILL_ASSIGN_OR_RETURN(small_, window(small_bytes_));
  return {};
}

Result<std::byte*> HostRows::allocate(size_t table) {
  Table& of = tables_[table];
  if (!of.is_shared) return nullptr;
  if (of.memory_of >= 0) {
    of.rows.data = tables_[of.memory_of].rows.data;
  } else if (of.offset >= 0) {
    of.rows.data = small_->of(0).data() + of.offset;
  } else {
    auto made = window(of.rows.count * of.rows.stride);
    if (!made.ok()) return made.status().at("table " + of.name);
    of.own = *std::move(made);
    of.rows.data = of.own->of(0).data();
  }
  return of.rows.record(of.firsts[communicator_.rank()]);
}

void HostRows::release(size_t table) {
  tables_[table].own.reset();
  tables_[table].rows.data = nullptr;
}

bool HostRows::in_order(size_t table) const {
  const table::RowShare& share = tables_[table].share;
  return share.map() == nullptr && share.in_order();
}

void HostRows::find(size_t table, const NamedRows& rows, int64_t* indices) const {
  const Table& of = tables_[table];
  const int64_t count = rows.count();
  if (of.share.map() != nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      const table::RowPlace place = rows.place(i);
      indices[i] = of.sources[place.group()] + place.number();
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const auto [rank, slot] = of.share.home(rows.row(i));
      indices[i] = of.firsts[rank] + slot;
    }
  }
}

Status HostRows::begin(int64_t note, std::span<int64_t> notes) {
  std::byte* const lines = small_->of(0).data();
  std::memcpy(lines + communicator_.rank() * kLine, &note, sizeof(note));
  RECMILL_RETURN_IF_ERROR(small_->fence(kBegin));
  for (size_t rank = 0; rank < notes.size(); ++rank)
    std::memcpy(&notes[rank], lines + rank * kLine, sizeof(note));
  return {};
}

Status HostRows::end() {
  return small_->fence(kEnd);
}

Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         std::span<const table::TableShare> shares,
                                                         ThreadPool& pool, HostRows* host) {
  if (host == nullptr) return create_tables(model, seed, shares, pool);
  RECMILL_RETURN_IF_ERROR(host->open());
  size_t next = 0;
  return create_tables(model, seed, shares, pool,
                       [&](const table::EmbeddingTable&) -> Result<table::TableRoom> {
                         table::TableRoom room;
                         RECMILL_ASSIGN_OR_RETURN(room.records, host->allocate(next++));
                         return room;
                       });
}

}  // namespace recmill::store
