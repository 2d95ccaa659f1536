// SPDX-License-Identifier: Apache-2.0
// The part of preprocessing that keeps no state, which may run anywhere, and what it is given.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "preprocess/run/compiled_graph.h"
#include "preprocess/run/preprocessor.h"

namespace recmill::preprocess {

/// One call of Preprocessor::train() or evaluate().
struct PreprocessCall {
  const CompiledGraph& graph;
  const ColumnBatch& batch;
  const DictionaryVersions* as_of;  // null: training
  DenseBatch& dense;
  SparseBatch& sparse;
  std::vector<char> plain_column;          // [features] every bag is one id that no bag op changes
  std::vector<FeatureCounts> counts;       // [features]
  std::vector<FlattenedCounts> flattened;  // [ops of dense columns], or empty: are not counted

  SparseFeature& output(int feature) const {
    return sparse.features[graph.output_of_feature[feature]];
  }
};

/// Some of a graph's chains.
struct ChainSubset {
  bool dense = false;         // all of its dense columns
  std::vector<int> features;  // into CompiledGraph::features
};

class StatelessOps {
 public:
  virtual ~StatelessOps() = default;
  /// Runs all ops but dictionaries. There is room for the dense values; the outputs' offsets are
  /// those before any lookup is left out, with room for rows and weights. Ids without a row become
  /// kNoRow; adds to counts. Any thread, and several at once.
  virtual Status run(PreprocessCall& call) = 0;
  /// Whether run() leaves a feature's rows and weights in a GPU's memory, so that the host has no
  /// room for them (SparseFeature::on_host). Those of which lookups were left out or have no row
  /// come to the host all the same.
  virtual bool keeps_on_gpu(int /*feature*/) const { return false; }
};

/// Whose dictionaries are the CPU's.
std::unique_ptr<Preprocessor> preprocessor_with(CompiledGraph graph, ThreadPool& pool,
                                                std::unique_ptr<StatelessOps> ops);

}  // namespace recmill::preprocess
