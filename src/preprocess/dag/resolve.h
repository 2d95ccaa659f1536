// SPDX-License-Identifier: Apache-2.0
// From what the user wrote to what is trained and how its inputs are made. Pure: the same options
// and schema give the same answer.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "preprocess/dag/feature_graph.h"
#include "preprocess/dag/feature_options.h"
#include "schema/column_spec.h"
#include "schema/table_spec.h"

namespace recmill::preprocess {

struct ResolvedFeatures {
  ModelSpec model;     // tables in order of first use
  FeatureGraph graph;  // features in the order of model.features
};

/// Features are in the order of their columns (bucketised dense columns last), those of one column
/// in the order of [[features]]. Errors are bad requests that name the key.
Result<ResolvedFeatures> resolve(const DataSchema& schema, const EmbeddingOptions& embedding,
                                 const std::vector<TableOptions>& tables,
                                 const std::vector<FeatureOptions>& features,
                                 const PreprocessOptions& preprocess);

}  // namespace recmill::preprocess
