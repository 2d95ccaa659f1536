// SPDX-License-Identifier: Apache-2.0
// Counts how often each row of a model's tables is looked up, exactly, in about a byte a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "device/buffer.h"
#include "device/thread_pool.h"
#include "schema/access_counts.h"
#include "schema/table_spec.h"
#include "stats/hot_threshold.h"
#include "stats/wrapped_rows.h"

namespace recmill::stats {

/// Each row has 8 bits, which wrap; how often is held apart, 16 to 43 bytes for each row of 256
/// lookups or more. What was counted does not depend on how samples were cut into batches, on
/// their order, or on threads.
class AccessCounter {
 public:
  /// `model`: AccessCounts::model. Fails where the machine does not have the memory.
  static Result<AccessCounter> create(const ModelSpec& spec, std::string model);

  /// Counts a batch whose features are those of the model.
  void add(const SparseBatch& batch, ThreadPool& pool);
  /// Adds what `other`, of the same model, has counted.
  void merge(const AccessCounter& other, ThreadPool& pool);

  /// Hot rows are those of the highest counts, over all tables, as many as a file of `bytes` has
  /// room for (0: default_file_bytes()); rows of equal counts are in or out together. A touched
  /// row that is not hot is one of its range.
  AccessCounts finish(ThreadPool& pool, int64_t bytes = 0) const;

  /// Lookups of one row.
  int64_t count(size_t table, int64_t row) const {
    return tables_[table].wrapped.times(row) * 256 + tables_[table].counters[row];
  }
  /// The rows of a table by their count, ascending, those of 0 lookups left out.
  std::vector<CountHistogram::Rows> rows_by_count(size_t table) const;
  /// The rows of a table with so many lookups, which are at least 1, ascending.
  std::vector<int64_t> rows_from(size_t table, int64_t count) const;

  int64_t memory_bytes() const { return static_cast<int64_t>(counters_.size()); }  // without wraps

  /// All that merge() needs of one table of another counter, to be sent in pieces: its 8-bit
  /// counters, how often they wrapped, and sums.
  struct TableSums {
    int64_t lookups = 0, bags = 0;
  };
  std::span<const uint8_t> counters(size_t table) const;
  std::vector<std::pair<int64_t, int64_t>> wrapped(size_t table) const {
    return tables_[table].wrapped.ascending();
  }
  TableSums sums(size_t table) const { return tables_[table].sums; }
  int64_t samples() const { return samples_; }
  const std::string& model() const { return model_; }
  size_t tables() const { return tables_.size(); }
  void merge_counters(size_t table, int64_t first_row, std::span<const uint8_t> counters);
  void merge_wrapped(size_t table, std::span<const std::pair<int64_t, int64_t>> wrapped);
  void merge_sums(size_t table, const TableSums& sums);
  void merge_samples(int64_t samples) { samples_ += samples; }

 private:
  struct Table {
    std::string name;
    int64_t rows = 0;
    uint8_t* counters = nullptr;  // [rows], in counters_
    WrappedRows wrapped;
    TableSums sums;
  };
  struct Task;
  AccessCounter() = default;
  void run(std::span<Task> tasks, ThreadPool& pool);

  std::string model_;
  std::vector<int> table_of_feature_;
  std::vector<Table> tables_;
  Buffer counters_;
  int64_t samples_ = 0;
};

}  // namespace recmill::stats
