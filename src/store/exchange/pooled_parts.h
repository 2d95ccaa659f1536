// SPDX-License-Identifier: Apache-2.0
// Bags whose rows' owners pool: what a rank's batch wants of each owner, and what an owner is asked
// for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "comm/batched_fetch.h"
#include "schema/table_spec.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// Features of tables whose owners pool, ascending: their indices in ModelSpec::features.
using PooledFeatures = std::vector<size_t>;

/// What one rank's batch wants pooled; known as soon as the ids are.
struct WantedParts {
  /// The bags that one owner has a part of, of one feature. A row's first lookup of a bag is odd:
  /// 2 row + 1; others are 2 row.
  struct Part {
    std::vector<int64_t> samples;  // of the rank's batch, ascending
    std::vector<int64_t> lookups;
    std::vector<float> weights;  // beside lookups, or empty
  };
  struct Feature {
    SparseFeature fetched;    // lookups of rows with copies, which are fetched and pooled here
    std::vector<Part> parts;  // [ranks]
  };
  std::vector<Feature> features;   // beside PooledFeatures
  std::vector<GroupedIds> to_ask;  // [ranks]: of each feature lookups, weights, bags by own slice
  static constexpr size_t kGroups = 3;

  /// Fills it in from lookups of `bags`, whose slices begin at samples `begins`: rows with copies
  /// stay, others go to their owner, and columns to all that have some.
  void set(size_t feature, const JaggedView& bags, const table::EmbeddingTable& table);
  void address(std::span<const int64_t> begins);
};

/// What one rank asks another to pool, of one feature: those bags that have a part here.
struct AskedBags {
  std::vector<int64_t> offsets;  // [bags + 1], into rows
  std::vector<int64_t> rows, slots;
  std::vector<float> weights;         // beside rows, or empty
  std::vector<int64_t> slice_begins;  // [slices of who asks + 1], into bags

  int64_t bags() const { return static_cast<int64_t>(offsets.size()) - 1; }
  JaggedView view(const std::vector<int64_t>& ids) const {
    return {offsets.data(), ids.data(), weights.empty() ? nullptr : weights.data(), bags(), false};
  }

  /// Of WantedParts::to_ask's groups of `feature`. Fails when they do not fit each other.
  Status read(const GroupedIds& asked, size_t feature, const table::EmbeddingTable& table);
};

}  // namespace recmill::store
