// SPDX-License-Identifier: Apache-2.0
// The operations from raw columns to dense values and rows, as a value: printable, comparable,
// JSON. A graph is a list of chains, one for each output; its nodes are (chain, position).
#pragma once

#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "preprocess/ops/op.h"

namespace recmill::preprocess {

enum class Source { dense, ids };

/// One output and the ops that make it from one raw column, in order.
struct Chain {
  std::string output;           // dense column or feature
  Source source = Source::ids;  // kind of the raw column
  std::string column;           // its name
  int column_index = 0;         // into DataSchema::dense or ::ids
  std::vector<OpSpec> ops;
  bool weighted = false;  // features: the column's weights travel with its ids
  /// ... each divided by the sum of those of its bag's lookups: a sum of rows is a weighted mean.
  bool normalized = false;
  bool operator==(const Chain&) const = default;
};

/// A dictionary from raw ids to rows (ops/categorify.h), shared by the features whose last op is
/// {"categorify", {"dictionary": name}}.
struct DictionarySpec {
  std::string name;                 // of its table
  int64_t rows = 0;                 // row 0 is that of unseen ids; so rows - 1 entries at most
  std::string when_full = "error";  // error, clamp (row 0) or drop
  int64_t min_count = 1;            // lookups of the first epoch by which an id gets a row
  std::string unseen = "row";       // what evaluation takes for ids without a row; zero or mean
  bool drops_unseen() const { return unseen == "zero"; }
  bool operator==(const DictionarySpec&) const = default;
};

struct FeatureGraph {
  std::vector<Chain> dense;     // in the order of DenseBatch's columns
  std::vector<Chain> features;  // in the order of ModelSpec::features that have ids of their own
  std::vector<DictionarySpec> dictionaries;
  bool operator==(const FeatureGraph&) const = default;
};

/// What says nothing (a min_count of 1) is left out, so that it is as it was before there was such.
Json to_json(const FeatureGraph& graph);
/// Errors name the place in the JSON.
Result<FeatureGraph> feature_graph_from_json(const Json& json);

}  // namespace recmill::preprocess
