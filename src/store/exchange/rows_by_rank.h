// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "table/embedding_table.h"
#include "table/row_map.h"

namespace recmill::store {

/// Who gets gradients of rows that several ranks may hold.
struct Recipients {
  enum Copied { nobody, home, holders };
  bool single = true;    // rows without copies: at their owner
  Copied copied = home;  // rows with copies
  bool operator==(const Recipients&) const = default;
};

/// Where the table's map puts rows [rows]: found once a batch. Empty where it has no map, and
/// arithmetic says.
void find_places(std::span<const int64_t> rows, const table::EmbeddingTable& table,
                 std::vector<table::RowPlace>& places);

/// Some rows of one table, which may be named more than once.
struct NamedRows {
  std::span<const int64_t> rows;
  std::span<const table::RowPlace> places;  // of find_places()
  std::span<const int64_t> indices = {};    // into both, of those that are meant; empty: all

  int64_t count() const { return std::ssize(indices.empty() ? rows : indices); }
  int64_t row(int64_t i) const { return rows[indices.empty() ? i : indices[i]]; }
  table::RowPlace place(int64_t i) const { return places[indices.empty() ? i : indices[i]]; }
};

/// Rows of one table grouped by rank. Where columns are split, each rank that has some has all
/// rows.
struct RowsByRank {
  std::vector<table::RowRange> of;  // [ranks], into order
  std::vector<int64_t> order;       // of the rows that were given, counted in their order
  std::vector<int64_t> place;       // [rows]: where in order each is; to_sources() alone
  std::vector<int64_t> slots;       // beside order: where the rank keeps the row; likewise

  /// At the rank that `table`'s fetches them from, which may be itself.
  void to_sources(const NamedRows& rows, const table::EmbeddingTable& table);
  /// At those ranks that get gradients of them, in the order given.
  void to_recipients(const NamedRows& rows, const table::EmbeddingTable& table,
                     Recipients recipients);

 private:
  void to_columns(int64_t rows, const table::EmbeddingTable& table);
  template <typename EachRank>
  void group(int64_t rows, int ranks, const EachRank& each_rank);
};

}  // namespace recmill::store
