// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "table/embedding_table.h"

namespace recmill::store {

/// Who gets gradients of rows that several ranks may hold.
struct Recipients {
  enum Copied { nobody, home, holders };
  bool single = true;    // rows without copies: at their owner
  Copied copied = home;  // rows with copies
  bool operator==(const Recipients&) const = default;
};

/// Rows of one table grouped by rank. Where columns are split, each rank that has some has all
/// rows.
struct RowsByRank {
  std::vector<table::RowRange> of;  // [ranks], into order
  std::vector<int64_t> order;       // indices of the rows that were given
  std::vector<int64_t> place;       // [rows]: where in order each is; to_sources() alone
  std::vector<int64_t> slots;       // beside order: where the rank keeps the row; likewise

  /// At the rank that `table`'s fetches them from, which may be itself. Rows may be named more than
  /// once.
  void to_sources(std::span<const int64_t> rows, const table::EmbeddingTable& table);
  /// At those ranks that get gradients of them, in the order given.
  void to_recipients(std::span<const int64_t> rows, const table::EmbeddingTable& table,
                     Recipients recipients);

 private:
  void to_columns(int64_t rows, const table::EmbeddingTable& table);
  template <typename EachRank>
  void group(int64_t rows, int ranks, const EachRank& each_rank);
};

}  // namespace recmill::store
