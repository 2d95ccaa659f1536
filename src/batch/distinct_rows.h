// SPDX-License-Identifier: Apache-2.0
// The rows that one rank's batch names in one table, each once, and by whom it is named.
#pragma once

#include <cstdint>
#include <vector>

namespace recmill {

/// Where the gradient of one lookup is. 8 bytes, so that a row's lookups are read in a stream.
struct LookupSource {
  uint32_t gradient_row = 0;  // pooled: sample of the rank's batch; unpooled: lookup of its feature
  uint16_t feature = 0;       // index among the features of the table, as they were given
  uint16_t slice = 0;         // of the global batch
  bool operator==(const LookupSource&) const = default;
};

/// Kernels fill it (kernels/distinct_rows); every array is reused from batch to batch.
struct DistinctRows {
  std::vector<int64_t> rows;          // [distinct], in the order of their first lookup
  std::vector<int64_t> begins;        // [distinct + 1], into sources
  std::vector<LookupSource> sources;  // [lookups], each row's in the order (slice, feature, sample,
                                      // position): the order of summation
  std::vector<float> weights;  // [lookups] beside sources; empty: no feature of the table has any
  std::vector<float> counts;  // [lookups] beside sources, lookups of the bag where its feature is a
                              // mean, else 1; empty: no feature of the table is a mean
  std::vector<int64_t> feature_begins;  // [features + 1], into positions
  std::vector<int64_t> positions;  // [lookups], feature by feature in the order of its view: index
                                   // into rows; lookup j of the view is at feature_begins + j

  int64_t count() const { return static_cast<int64_t>(rows.size()); }
  int64_t lookups() const { return static_cast<int64_t>(sources.size()); }
  bool operator==(const DistinctRows&) const = default;
};

}  // namespace recmill
