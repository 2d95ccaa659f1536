// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/rows_by_rank.h"

#include <numeric>

namespace recmill::store {

void find_places(std::span<const int64_t> rows, const table::EmbeddingTable& table,
                 std::vector<table::RowPlace>& places) {
  const table::RowMap* map = table.share().map();
  places.resize(map == nullptr ? 0 : rows.size());
  if (map != nullptr) map->places(rows, places.data());
}

void RowsByRank::to_columns(int64_t rows, const table::EmbeddingTable& table) {
  of.assign(table.share().ranks(), {});
  for (int rank = 0; rank < table.share().ranks(); ++rank)
    if (table.columns_of(rank).count > 0) of[rank].end = rows;
  order.resize(rows);
  std::iota(order.begin(), order.end(), 0);
}

// each_rank(i, f) calls f(rank) for each rank that gets row i.
template <typename EachRank>
void RowsByRank::group(int64_t rows, int ranks, const EachRank& each_rank) {
  of.assign(ranks, {});
  for (int64_t i = 0; i < rows; ++i) each_rank(i, [&](int rank) { ++of[rank].end; });
  for (int rank = 1; rank < ranks; ++rank) {
    of[rank].begin = of[rank - 1].end;
    of[rank].end += of[rank].begin;
  }
  order.resize(of.back().end);
  std::vector<table::RowRange> left = of;
  for (int64_t i = 0; i < rows; ++i) each_rank(i, [&](int rank) { order[left[rank].begin++] = i; });
}

void RowsByRank::to_sources(const NamedRows& rows, const table::EmbeddingTable& table) {
  const int64_t count = rows.count();
  place.resize(count);
  slots.resize(count);
  if (table.column_split().is_split()) {
    to_columns(count, table);
    std::iota(place.begin(), place.end(), 0);
    for (int64_t i = 0; i < count; ++i) slots[i] = rows.row(i);
    return;
  }
  const table::RowShare& share = table.share();
  std::vector<table::RowShare::Home> sources(count);
  if (share.map() == nullptr) {
    for (int64_t i = 0; i < count; ++i) sources[i] = share.home(rows.row(i));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const auto source = share.map()->source(rows.place(i), share.rank());
      sources[i] = {source.device, source.slot};
    }
  }
  group(count, share.ranks(), [&](int64_t i, const auto& put) { put(sources[i].rank); });
  for (int64_t at = 0; at < count; ++at) {
    place[order[at]] = at;
    slots[at] = sources[order[at]].slot;
  }
}

void RowsByRank::to_recipients(const NamedRows& rows, const table::EmbeddingTable& table,
                               Recipients recipients) {
  const int64_t count = rows.count();
  const table::RowShare& share = table.share();
  if (table.column_split().is_split()) return to_columns(recipients.single ? count : 0, table);
  if (share.map() == nullptr) {
    std::vector<int> owners(recipients.single ? count : 0);
    for (size_t i = 0; i < owners.size(); ++i) owners[i] = share.owner(rows.row(i));
    group(static_cast<int64_t>(owners.size()), share.ranks(),
          [&](int64_t i, const auto& put) { put(owners[i]); });
    return;
  }
  const table::RowMap& map = *share.map();
  group(count, share.ranks(), [&](int64_t i, const auto& put) {
    const table::RowPlace place = rows.place(i);
    const bool copied = map.is_copied(place);
    if (copied && recipients.copied == Recipients::holders) {
      for (int rank = 0; rank < share.ranks(); ++rank)
        if (map.has_copy(place, rank)) put(rank);
    } else if (copied ? recipients.copied == Recipients::home : recipients.single) {
      put(map.home(place).device);
    }
  });
}

}  // namespace recmill::store
