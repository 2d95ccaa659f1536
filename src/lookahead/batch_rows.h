// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "lookahead_plan/slot_tables.h"
#include "schema/table_spec.h"

namespace recmill::lookahead {

/// The distinct rows that batches look up, numbered as SlotTables does. Keeps memory from batch to
/// batch.
class BatchRows {
 public:
  explicit BatchRows(const ModelSpec& model);

  /// Bytes that it keeps at most, of batches of so many lookups in each table.
  static int64_t most_bytes(const ModelSpec& model, std::span<const int64_t> lookups);

  /// Of samples [begin, end), ascending. Every row is of its table.
  void find(const SparseBatch& batch, int64_t begin, int64_t end, ThreadPool& pool,
            std::vector<int64_t>& rows);

 private:
  /// One table's: by a bit a row where the table is not far larger than what is looked up, else in
  /// a hash table.
  struct OfTable {
    std::vector<size_t> features;
    int64_t begin = 0, rows = 0;
    std::vector<uint64_t> bits;   // of rows; zeros between batches
    std::vector<uint64_t> words;  // of `bits`: those that are not zero
    std::vector<int64_t> places;  // -1: empty
    std::vector<int64_t> distinct;
  };
  static void find_by_bits(const SparseBatch& batch, int64_t begin, int64_t end, OfTable& table);
  static void find_by_hash(const SparseBatch& batch, int64_t begin, int64_t end, int64_t lookups,
                           OfTable& table);
  static void find(const SparseBatch& batch, int64_t begin, int64_t end, OfTable& table);

  std::vector<OfTable> tables_;
};

}  // namespace recmill::lookahead
