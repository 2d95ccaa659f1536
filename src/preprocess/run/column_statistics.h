// SPDX-License-Identifier: Apache-2.0
// What "standardize" is told of its column: mean and deviation of the values that come to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "device/thread_pool.h"
#include "preprocess/dag/feature_graph.h"
#include "preprocess/run/compiled_graph.h"

namespace recmill::preprocess {

/// Of the values added, in that order, in float64 (Welford's recurrence); NaN is left out.
struct ColumnStatistics {
  int64_t count = 0;
  double mean = 0.0;
  double squares = 0.0;  // sum of the squares of distances from the mean

  void add(float value);
  /// Root of the mean of squares; 1 where all values are the same.
  double deviation() const;
};

/// Whether a dense column's op lacks its statistics.
bool lacks_statistics(const FeatureGraph& graph);

/// Takes the statistics of `from`, chain by chain, where both have the same ops.
void take_statistics(const FeatureGraph& from, FeatureGraph& graph);

/// The graph with its features alone: who looks at no dense value needs no statistics.
FeatureGraph without_dense(FeatureGraph graph);

/// One pass over the rows for the first op of each dense column that lacks its statistics. Rows are
/// added in the order of the data; the number of threads changes no bit.
class StatisticsPass {
 public:
  enum class Way { fast, plain };  // Op::run, or Op::plain value by value: the same bits

  static Result<StatisticsPass> begin(const FeatureGraph& graph, Way way);
  void add(const ColumnBatch& batch, ThreadPool& pool);
  /// Writes what was found into the graph that it began with.
  Status finish(FeatureGraph& graph) const;

 private:
  struct Column {
    size_t chain, op;  // of the graph
    CompiledChain before;
    ColumnStatistics found;
  };
  explicit StatisticsPass(Way way) : way_(way) {}
  void add(const ColumnBatch& batch, Column& column) const;

  Way way_;
  std::vector<Column> columns_;
};

}  // namespace recmill::preprocess
