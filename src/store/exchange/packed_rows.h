// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "batch/feature_layout.h"
#include "store/gpu/held_tables.h"

namespace recmill::store {

/// How rows of several features for some samples are one after the other in float32, so that what
/// belongs to samples that follow each other is one piece of those of pooled features, and one of
/// each other feature: first a row a sample, in which pooled features are beside each other; then
/// for each other feature a row a lookup. Every feature begins at a multiple of 4 floats.
class PackedRows {
 public:
  struct Feature {
    int64_t dim = 0;
    bool is_pooled = true;
  };
  /// Some floats that follow each other.
  struct Piece {
    int64_t begin = 0;
    int64_t floats = 0;
  };

  /// `lookups` [features].
  PackedRows(std::span<const Feature> features, int64_t samples, std::vector<int64_t> lookups)
      : samples_(samples), lookups_(std::move(lookups)) {
    for (const Feature& feature : features) {
      begins_.push_back(width_);
      strides_.push_back((feature.dim + 3) / 4 * 4);
      if (feature.is_pooled) width_ += strides_.back();
    }
    floats_ = samples * width_;
    for (size_t f = 0; f < features.size(); ++f) {
      if (features[f].is_pooled) {
        strides_[f] = width_;
        continue;
      }
      begins_[f] = floats_;
      floats_ += lookups_[f] * strides_[f];
      unpooled_.push_back(f);
    }
  }

  size_t features() const { return begins_.size(); }
  int64_t floats() const { return floats_; }
  /// Of a feature: one a sample, or one a lookup.
  int64_t rows(size_t feature) const {
    const bool is_pooled = std::ranges::find(unpooled_, feature) == unpooled_.end();
    return is_pooled ? samples_ : lookups_[feature];
  }
  /// Where a feature's first row begins, and how far its rows are from each other.
  int64_t begin(size_t feature) const { return begins_[feature]; }
  int64_t stride(size_t feature) const { return strides_[feature]; }

  /// What belongs to samples [first, first + samples), whose lookups are the `counts` [features]
  /// from `lookups` [features] on: as many pieces whatever they are.
  std::vector<Piece> part(int64_t first, int64_t samples, std::span<const int64_t> lookups,
                          std::span<const int64_t> counts) const {
    std::vector<Piece> pieces{{first * width_, samples * width_}};
    for (const size_t f : unpooled_)
      pieces.push_back({begins_[f] + lookups[f] * strides_[f], counts[f] * strides_[f]});
    return pieces;
  }
  /// All of it, in the same pieces.
  std::vector<Piece> all() const {
    return part(0, samples_, std::vector<int64_t>(lookups_.size(), 0), lookups_);
  }

 private:
  int64_t samples_;
  std::vector<int64_t> lookups_;  // [features]
  int64_t width_ = 0;             // of a sample
  int64_t floats_ = 0;
  std::vector<int64_t> begins_, strides_;  // [features]
  std::vector<size_t> unpooled_;
};

/// Beside held.features.
inline std::vector<PackedRows::Feature> packed_shapes(const HeldTables& held,
                                                      const ModelSpec& model) {
  std::vector<PackedRows::Feature> shapes;
  for (const size_t f : held.features)
    shapes.push_back({model.dim_of(f), is_pooled(model.features[f].pooling)});
  return shapes;
}

}  // namespace recmill::store
