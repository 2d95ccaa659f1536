// SPDX-License-Identifier: Apache-2.0
// The rows that lookups give: of a pooled feature one a sample, of an unpooled one, a sequence, one
// a lookup. Pooled rows of a sample are side by side; a sequence has a buffer of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/saturating.h"
#include "batch/sparse_batch.h"
#include "schema/table_spec.h"

namespace recmill {

inline bool is_pooled(Pooling pooling) {
  return pooling != Pooling::none;
}

/// Rows that lookups give, and that their gradient has.
inline int64_t rows_out(Pooling pooling, int64_t samples, int64_t lookups) {
  return is_pooled(pooling) ? samples : lookups;
}
inline int64_t rows_out(Pooling pooling, const JaggedView& bags) {
  return is_pooled(pooling) ? bags.samples : bags.lookups();
}

/// The walk over the features of a model, made once of its ModelSpec.
class FeatureLayout {
 public:
  struct Feature {
    size_t index = 0;  // of ModelSpec::features
    Pooling pooling = Pooling::sum;
    int table = 0;
    int64_t dim = 0;      // floats of a row
    int64_t column = 0;   // pooled: its first among the floats of a sample
    size_t sequence = 0;  // unpooled: its number among such

    bool is_pooled() const { return recmill::is_pooled(pooling); }
    /// Of this feature's rows in `batch`.
    int64_t rows_out(const SparseBatch& batch) const {
      return recmill::rows_out(pooling, batch.features[index].view(batch.samples));
    }
  };

  explicit FeatureLayout(const ModelSpec& model) {
    for (size_t f = 0; f < model.features.size(); ++f) {
      const FeatureSpec& of = model.features[f];
      Feature feature{f, of.pooling, of.table, model.dim_of(f)};
      if (feature.is_pooled()) {
        feature.column = columns_;
        columns_ = saturating_sum({columns_, feature.dim});
      } else {
        feature.sequence = sequences_.size();
        sequences_.push_back(feature);
      }
      features_.push_back(feature);
    }
  }

  /// In the order of ModelSpec::features.
  std::span<const Feature> features() const& { return features_; }
  void features() const&& = delete;
  /// The unpooled ones, in that order.
  std::span<const Feature> sequences() const& { return sequences_; }
  void sequences() const&& = delete;
  /// Floats of all pooled rows of a sample.
  int64_t columns() const { return columns_; }

 private:
  std::vector<Feature> features_, sequences_;
  int64_t columns_ = 0;
};

}  // namespace recmill
