// SPDX-License-Identifier: Apache-2.0
// A feature graph with its ops made: what both preprocessors run.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/column_batch.h"
#include "preprocess/dag/feature_graph.h"
#include "preprocess/ops/categorify.h"
#include "preprocess/ops/op.h"
#include "schema/table_spec.h"

namespace recmill::preprocess {

/// Ops of a chain, in the only order that is run: on dense values, into buckets, on bags, on ids.
struct CompiledChain {
  Chain chain;
  std::vector<std::unique_ptr<Op>> ops;  // owns what the lists below name
  std::vector<const DenseOp*> dense;
  const BucketOp* bucket = nullptr;
  std::vector<const BagOp*> bags;
  std::vector<const IdOp*> ids;
  int dictionary = -1;  // the last step, if not -1

  /// Length of a bag after all bag ops.
  int64_t length(int64_t before) const {
    return before < static_cast<int64_t>(short_lengths.size())
               ? short_lengths[static_cast<size_t>(before)]
               : full_length(before);
  }
  int64_t full_length(int64_t before) const;
  std::array<int64_t, 16> short_lengths{};  // full_length() of short bags
  bool keeps_single = true;                 // all bag ops do
};

struct CompiledGraph {
  std::vector<CompiledChain> dense;
  std::vector<int> dense_ops_before;  // [dense]: ops of the chains before; all ops are numbered so
  int dense_ops = 0;
  std::vector<CompiledChain> features;  // those with ids of their own
  std::vector<int> feature_of_output;   // [model features]: index into `features`
  std::vector<int> output_of_feature;   // [features]: the first of them, where it is computed
  std::vector<int64_t> rows;            // [features], rows of its table
  std::vector<DictionarySpec> dictionaries;
  std::vector<int> counting;  // dictionaries whose sightings are lists, behind those of all ids
  std::vector<Dictionary::WhenFull> when_full;           // [dictionaries]
  std::vector<std::vector<int>> features_of_dictionary;  // [dictionaries], in feature order
};

Result<CompiledGraph> compile(const FeatureGraph& graph, const ModelSpec& model);

/// What the ops on ids of a chain begin with: a sample's value in its bucket, or its ids after all
/// ops on bags, beside weights of 1 where the column has none.
Bag plain_bag(const CompiledChain& chain, const ColumnBatch& batch, int64_t sample);

/// Divides the weights of a bag by their sum, in float64 from left to right; all become 0 where
/// that is 0.
void normalize_weights(std::span<float> weights);

/// The error for an id that has no row.
Status refused_id(const CompiledGraph& graph, int feature, int64_t sample, uint64_t id);

}  // namespace recmill::preprocess
