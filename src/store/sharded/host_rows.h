// SPDX-License-Identifier: Apache-2.0
// Rows of all ranks in memory that all of them read: for ranks of one host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "kernels/row_storage.h"
#include "schema/table_spec.h"
#include "store/exchange/rows_by_rank.h"
#include "table/embedding_table.h"
#include "table/table_share.h"

namespace recmill::store {

/// Of each table whose rows are whole, the rows of all ranks are one behind the other, rank after
/// rank, so that one address and one stride reach all of them. Each rank writes its own alone, and
/// reads any between begin() and end(). What it reads of others is no traffic: nothing is sent.
/// Optimizer state by row is not among it. Tables with split columns are left out.
///
/// A table of a huge page or more has a window of its own, so that tables may be given up one by
/// one; smaller ones are in one together.
class HostRows {
 public:
  /// Whether there are others to share rows with.
  static bool possible(const Communicator& communicator) {
    return communicator.ranks() > 1 && communicator.shares_memory();
  }
  /// Where rows will be stored. `shares` [tables of `model`]: this rank's; the communicator
  /// outlives this. `memory_of` [tables], or empty: a table is where that one is, which is of the
  /// same shape and not behind it.
  HostRows(const ModelSpec& model, std::span<const table::TableShare> shares,
           Communicator& communicator, std::span<const int> memory_of = {});

  bool has(size_t table) const { return tables_[table].is_shared; }
  bool has_all() const;

  /// Collective, before allocate(). Fails on all ranks, as Communicator::window().
  Status open();
  /// Collective. Where this rank's rows of the table are, of zeros; null where has() is false.
  /// Fails on all ranks, naming the table.
  Result<std::byte*> allocate(size_t table);
  /// Gives this rank's view of a table up; its memory goes when all ranks have.
  void release(size_t table);

  /// Of all ranks, by the indices of find().
  const kernels::RowStorage& rows(size_t table) const { return tables_[table].rows; }
  /// Whether the index of a row is its number, so that nobody has to ask.
  bool in_order(size_t table) const;
  /// What this rank reads: a row's own copy, or another one.
  void find(size_t table, const NamedRows& rows, int64_t* indices) const;

  /// Collective: everything that ranks did before is done and seen. Every rank gets the `note` of
  /// each [ranks].
  Status begin(int64_t note, std::span<int64_t> notes);
  /// Collective: nobody reads any more.
  Status end();

 private:
  struct Table {
    bool is_shared = false;
    table::RowShare share;
    kernels::RowStorage rows;
    std::vector<int64_t> firsts;   // [ranks + 1], into rows
    std::vector<int64_t> sources;  // [groups of the map]: the index of number 0, for this rank
    int memory_of = -1;            // another table; -1: its own, which is:
    int64_t offset = -1;           // bytes into the window of small tables; -1: a window of its own
    std::unique_ptr<Window> own;
    std::string name;
  };

  Result<std::unique_ptr<Window>> window(int64_t bytes);

  Communicator& communicator_;
  std::vector<Table> tables_;
  int64_t small_bytes_ = 0;        // of the notes and all small tables
  std::unique_ptr<Window> small_;  // notes [ranks], a line each, then small tables
};

/// A rank's share of every table [tables], with initial rows. With `host`, which is of the same
/// shares and outlives the tables, collective: rows are stored there, where it has them.
Result<std::vector<table::EmbeddingTable>> create_tables(const ModelSpec& model, uint64_t seed,
                                                         std::span<const table::TableShare> shares,
                                                         ThreadPool& pool, HostRows* host);

}  // namespace recmill::store
