// SPDX-License-Identifier: Apache-2.0
// From batches to FeatureStats, and FeatureStats as a table for people.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "batch/column_batch.h"
#include "device/thread_pool.h"
#include "schema/column_spec.h"
#include "schema/feature_stats.h"
#include "stats/id_counts.h"

namespace recmill::stats {

/// How raw ids of a column become rows, for its collisions.
struct ColumnTable {
  int64_t rows = 0;                         // 0: no table
  std::function<int64_t(uint64_t)> row_of;  // a pure function; empty: observed collisions unasked
};

class Collector {
 public:
  /// Counts up to `id_limit` ids a column exactly: about 60 bytes each.
  explicit Collector(const DataSchema& schema, int64_t id_limit = 2'000'000);

  /// Columns are counted beside each other on the threads of `pool`. The figures do not depend on
  /// how rows are cut into batches.
  void add(const ColumnBatch& batch, ThreadPool& pool);

  /// `tables`: one for each id column, or empty.
  FeatureStats finish(const std::vector<ColumnTable>& tables = {}) const;

 private:
  struct IdColumnState {
    IdCounts counts;
    std::vector<int64_t> lengths;
    int64_t missing = 0, longest = 0;
    double missing_labels = 0;
    std::unordered_map<uint64_t, FrequentId> first;  // the first different ids
  };
  struct DenseColumnState {
    int64_t present = 0, missing = 0;
    double minimum = 0, maximum = 0, sum = 0, missing_labels = 0;
    std::map<int, ValueBucket> buckets;  // by bucket_of()
  };
  static void count(const IdColumn& cells, const std::vector<float>& labels, IdColumnState& state);
  static void count(const std::vector<float>& cells, const std::vector<float>& labels,
                    DenseColumnState& state);
  static IdColumnStats measure(const IdColumnState& state, const ColumnTable& table);

  DataSchema schema_;
  int64_t samples_ = 0;
  double labels_ = 0;
  std::vector<DenseColumnState> dense_;
  std::vector<IdColumnState> ids_;
};

/// One line a column; estimates are marked with '~'.
std::string table_of(const FeatureStats& stats);

}  // namespace recmill::stats
