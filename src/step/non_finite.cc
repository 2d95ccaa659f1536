// SPDX-License-Identifier: Apache-2.0
#include "step/non_finite.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "batch/feature_layout.h"
#include "batch/gpu_sparse_batch.h"

namespace recmill::train {
namespace {

bool all_finite(const float* values, int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

Status named(const ForwardEvidence& evidence, const std::string& what) {
  return Status::Failed("iteration " + std::to_string(evidence.batch.before.iteration) +
                        ": not finite: " + what);
}

Status search_dense(const ForwardEvidence& evidence) {
  const DenseBatch& dense = evidence.batch.dense;
  for (int64_t i = 0; i < dense.samples * dense.columns; ++i) {
    if (!std::isfinite(dense.values[i])) {
      const bool none = std::isnan(dense.values[i]);
      return named(evidence, "dense column " + std::to_string(i % dense.columns) + " of sample " +
                                 std::to_string(dense.first + i / dense.columns) +
                                 (none ? ", which is missing there or no number: \"fill_null\" in "
                                         "preprocess.dense fills it"
                                       : ""));
    }
  }
  return {};
}

// A pooled value that is not finite leads to its bag; with one lookup that is the row.
Status search_rows(const ForwardEvidence& evidence, size_t f) {
  const FeatureSpec& feature = evidence.spec.features[f];
  const SparseBatch& sparse = evidence.batch.sparse;
  const JaggedView bags = sparse.features[f].view(evidence.batch.samples());
  const bool pooled = is_pooled(feature.pooling);
  for (int64_t i = 0; i < rows_out(feature.pooling, bags); ++i) {
    const store::FeatureOutput& output = evidence.outputs[f];
    if (all_finite(output.data + i * output.stride, evidence.spec.dim_of(f))) continue;
    const int64_t first = pooled ? bags.offsets[i] : bags.offsets[0] + i;
    const int64_t rows = pooled ? bags.offsets[i + 1] - first : 1;
    RECMILL_ASSIGN_OR_RETURN(const auto all, rows_of(sparse, f));
    return named(evidence, "table " + evidence.spec.tables[feature.table].name + ", row " +
                               std::to_string(all[first - bags.offsets[0]]) +
                               (rows > 1 ? " or another of its bag" : "") + ", feature " +
                               feature.name);
  }
  return {};
}

Status search_layers(const ForwardEvidence& evidence) {
  for (const model::ParameterSpec& layer : evidence.layers) {
    if (!all_finite(evidence.parameters.data() + layer.offset, layer.size())) {
      return named(evidence, "layer " + layer.name);
    }
  }
  return {};
}

}  // namespace

Status name_non_finite(const ForwardEvidence& evidence) {
  RECMILL_RETURN_IF_ERROR(search_dense(evidence));
  for (size_t f = 0; f < evidence.spec.features.size(); ++f) {
    RECMILL_RETURN_IF_ERROR(search_rows(evidence, f));
  }
  RECMILL_RETURN_IF_ERROR(search_layers(evidence));
  for (size_t i = 0; i < evidence.logits.size(); ++i) {
    if (!std::isfinite(evidence.logits[i])) {
      return named(evidence,
                   "the logit of sample " + std::to_string(evidence.batch.dense.first + i));
    }
  }
  return {};
}

}  // namespace recmill::train
