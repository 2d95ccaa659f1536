// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "batch/feature_layout.h"
#include "model/model.h"

namespace recmill::train {

/// Where a store finds the rows of each feature, or their gradients [features]: `Place` is its
/// FeatureOutput or FeatureGradient. Pooled rows are in `pooled` [samples][layout.stride], those of
/// each sequence in memory of their own.
template <typename Place>
std::vector<Place> place_rows(const FeatureLayout& features, const model::EmbeddingLayout& layout,
                              float* pooled, std::span<float* const> sequences) {
  std::vector<Place> places;
  for (const FeatureLayout::Feature& feature : features.features()) {
    if (feature.is_pooled()) {
      places.push_back({pooled + layout.offset[feature.index], layout.stride});
    } else {
      places.push_back({sequences[feature.sequence], feature.dim});
    }
  }
  return places;
}

}  // namespace recmill::train
