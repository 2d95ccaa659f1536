// SPDX-License-Identifier: Apache-2.0
// Runs a feature graph: raw columns become dense values and rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "preprocess/dag/feature_graph.h"
#include "preprocess/ops/op.h"
#include "schema/table_spec.h"

namespace recmill::preprocess {

/// The lists that are the state of a graph's dictionaries, by name: of each its ids
/// ("dictionary/NAME"), in the order of FeatureGraph::dictionaries, then of those with a min_count
/// above 1 the sightings of ids without a row ("sightings/NAME").
std::vector<std::string> dictionary_lists(const FeatureGraph& graph);

/// Entries of each of these lists at some moment. Travels with a batch, so that a checkpoint after
/// that batch, or an evaluation there, sees the dictionaries as they were.
using DictionaryVersions = std::vector<int64_t>;

/// What became of a feature's lookups, over all batches so far.
struct FeatureCounts {
  int64_t lookups = 0;  // rows handed on
  int64_t missing = 0;  // samples whose cell was empty
  IdCounts ids;
  bool operator==(const FeatureCounts&) const = default;
};

/// Equal batches in equal order give equal bits, at any number of threads, and however training and
/// evaluation are interleaved. train() is called in the order of the data, by one thread at a time;
/// the other calls may come from any threads at any time, several at once: what an evaluate() makes
/// is in the caller's batch alone.
class Preprocessor {
 public:
  virtual ~Preprocessor() = default;

  /// Replaces `dense` and `sparse` (their vectors are reused) by what the graph makes of `batch`.
  /// Dictionaries grow in the order (sample, feature, position). An id that is an error is named
  /// with column, sample (position in the global order) and value.
  virtual Status train(const ColumnBatch& batch, DenseBatch& dense, SparseBatch& sparse) = 0;

  /// The same, with dictionaries as they were at `as_of`: nothing grows, unseen ids get row 0.
  virtual Status evaluate(const ColumnBatch& batch, const DictionaryVersions& as_of,
                          DenseBatch& dense, SparseBatch& sparse) = 0;

  /// Before the train() of rows that were trained on before: from now on no id comes nearer to its
  /// min_count.
  virtual void stop_counting() = 0;

  /// After the last train().
  virtual DictionaryVersions versions() const = 0;

  /// Copies entries first ... of one of dictionary_lists(), in a dictionary the ids of rows
  /// 1 + first ...; [first, first + ids.size()) must be there. Their order never changes, so a
  /// version's state is its first entries.
  virtual void read_dictionary(int list, int64_t first, std::span<uint64_t> ids) const = 0;
  /// Replaces a list's entries (those of a checkpoint); in the order of the lists.
  virtual Status restore_dictionary(int list, std::span<const uint64_t> ids) = 0;

  /// In the order of ModelSpec::features.
  virtual std::vector<FeatureCounts> counts() const = 0;
  /// What ops on dense columns flattened of training batches so far: of each op of each chain of
  /// FeatureGraph::dense, chain after chain.
  virtual std::vector<FlattenedCounts> flattened() const = 0;
};

/// On all threads of `pool`, which must outlive it. `model` is that of resolve(), to which a model
/// may have added features that repeat the ids of others (FeatureSpec::same_ids_as). Errors name
/// the chain and the op.
Result<std::unique_ptr<Preprocessor>> make_preprocessor(const FeatureGraph& graph,
                                                        const ModelSpec& model, ThreadPool& pool);

/// The definition of the above, for verification: Op::plain, one value after the other, and a
/// std::map for each dictionary.
Result<std::unique_ptr<Preprocessor>> make_plain_preprocessor(const FeatureGraph& graph,
                                                              const ModelSpec& model);

}  // namespace recmill::preprocess
