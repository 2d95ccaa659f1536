// SPDX-License-Identifier: Apache-2.0
#include "table/table_shares.h"

#include <algorithm>
#include <cstdint>

#include "table/embedding_table.h"

namespace recmill::table {
namespace {

/// The ranks of the pieces of table number `table`, one after the other.
std::vector<int> ranks_of_pieces(const TableSpec& spec, size_t table, int ranks) {
  const auto groups = column_groups(spec.dim);
  std::vector<int> pieces(static_cast<size_t>(std::min<int64_t>(groups, ranks)));
  for (size_t piece = 0; piece < pieces.size(); ++piece)
    pieces[piece] = static_cast<int>((table + piece) % static_cast<size_t>(ranks));
  return pieces;
}

/// `home`: the rank that holds it, where it is stored whole at one by its size.
TableShare share_of(const TableSpec& spec, size_t table, int home, int rank, int ranks) {
  switch (spec.sharding) {
    case Sharding::hash:
      break;
    case Sharding::table:
      return RowShare::whole(spec.rows, rank, ranks, home);
    case Sharding::row_range:
      return RowShare::by_range(spec.rows, rank, ranks);
    case Sharding::column:
      return TableShare::by_columns(spec, ranks_of_pieces(spec, table, ranks), rank, ranks);
  }
  return RowShare(spec.rows, rank, ranks);
}

int64_t bytes_of(const TableSpec& spec, size_t table, int rank, int ranks) {
  // By hash a rank holds as many rows as by range, which is less to work out.
  if (spec.sharding == Sharding::hash)
    return EmbeddingTable::bytes(spec, RowShare::by_range(spec.rows, rank, ranks));
  return EmbeddingTable::bytes(spec, share_of(spec, table, 0, rank, ranks));
}

/// The ranks of tables that are stored whole at one; 0 for the others.
std::vector<int> homes_of(std::span<const TableSpec> tables, int ranks) {
  std::vector<int> homes(tables.size(), 0);
  std::vector<int64_t> bytes(ranks, 0);
  std::vector<size_t> whole;
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& spec = tables[t];
    if (spec.sharding == Sharding::table) whole.push_back(t);
    for (int rank = 0; rank < ranks && spec.sharding != Sharding::table; ++rank)
      bytes[rank] += bytes_of(spec, t, rank, ranks);
  }
  const auto size = [&](size_t t) { return bytes_of(tables[t], t, 0, 1); };
  std::ranges::stable_sort(whole, [&](size_t a, size_t b) { return size(a) > size(b); });
  for (const size_t t : whole) {
    const auto least = std::ranges::min_element(bytes);
    *least += size(t);
    homes[t] = static_cast<int>(least - bytes.begin());
  }
  return homes;
}

}  // namespace

std::vector<TableShare> shares_of(std::span<const TableSpec> tables, int rank, int ranks) {
  const std::vector<int> homes = homes_of(tables, ranks);
  std::vector<TableShare> shares;
  for (size_t t = 0; t < tables.size(); ++t)
    shares.push_back(share_of(tables[t], t, homes[t], rank, ranks));
  return shares;
}

}  // namespace recmill::table
