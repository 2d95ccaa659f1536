// SPDX-License-Identifier: Apache-2.0
// One embedding table, or one rank's share of it: weights and row optimizer's state.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "device/buffer.h"
#include "device/thread_pool.h"
#include "kernels/row_storage.h"
#include "schema/cluster_spec.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_state.h"
#include "table/table_share.h"

namespace recmill::table {

/// Memory of somebody else, of zeros, that outlives a table: for its records, and for its state by
/// row. Null: none.
struct TableRoom {
  std::byte* records = nullptr;
  float* row_state = nullptr;
};

/// Move-only. Rows in memory are in records (kernels::RowStorage) of one buffer.
class EmbeddingTable {
 public:
  /// Bytes that create() will allocate on `device`: weights, and state by itself.
  static void need(const TableSpec& spec, const TableShare& share, int device,
                   MemoryLedger& ledger);
  /// Their sum.
  static int64_t bytes(const TableSpec& spec, const TableShare& share);
  /// What create() takes of the machine: the same in whole pages, and its room in shared ones.
  struct MappedBytes {
    int64_t own = 0, shared = 0;
  };
  static MappedBytes mapped_bytes(const TableSpec& spec, const TableShare& share);

  /// Where the parts of the records of `share` are; addresses are left out.
  static kernels::RowStorage layout(const TableSpec& spec, const TableShare& share);
  /// Bytes from row to row in memory.
  static int64_t row_bytes(const TableSpec& spec);

  /// Allocates the rows of `share` and fills in their initial values (InitialRows) on `pool`.
  /// Fails, naming the table, on a dimension or a number of rows below 1 and when memory is short.
  /// What is smaller than a huge page is taken from `pages`, where they are given.
  static Result<EmbeddingTable> create(const TableSpec& spec, uint64_t seed,
                                       const TableShare& share, ThreadPool& pool,
                                       SharedPages* pages = nullptr);
  /// The same without its rows: everything can be asked but what is in them, until allocate().
  static EmbeddingTable without_rows(const TableSpec& spec, uint64_t seed, const TableShare& share);
  /// Room for the rows, of zeros, as create() takes it, but for what has some in `room`.
  Status allocate(SharedPages* pages, const TableRoom& room = {});
  /// Initial weights and state, as create() fills them in.
  void fill(ThreadPool& pool);

  const TableSpec& spec() const { return spec_; }
  const RowShare& share() const { return share_.rows; }
  const ColumnSplit& column_split() const { return share_.columns; }
  /// The columns that this share, or that of another rank, has of its rows.
  ColumnRange columns() const { return columns_of(share().rank()); }
  ColumnRange columns_of(int rank) const { return share_.columns_of(rank, spec_.dim); }
  uint64_t seed() const { return seed_; }
  Extent extent() const { return {share().extent(), columns()}; }
  const RowState& state() const { return state_; }  // of this share's columns
  /// The rows as kernels see them, by slot; their dim is this share's columns. The view stays valid
  /// while the table lives, moved or not.
  const kernels::RowStorage& rows() const { return rows_; }

  /// Copies slots [first, first + count) out: weights [count][columns] in float32, exact for every
  /// precision; state[c] [count][width of column c].
  void read(int64_t first, int64_t count, std::span<float> weights,
            std::span<const std::span<float>> state) const;
  /// Replaces them. Weights that came from read() come back bit for bit; others are rounded to
  /// nearest. Without state columns given, the state stays.
  void write(int64_t first, int64_t count, std::span<const float> weights,
             std::span<const std::span<const float>> state);

 private:
  float* state_column(int64_t slot, size_t column) const;

  TableSpec spec_;
  TableShare share_{RowShare()};
  uint64_t seed_ = 0;
  RowState state_;
  Buffer records_;
  Buffer row_state_;
  kernels::RowStorage rows_;
};

}  // namespace recmill::table
