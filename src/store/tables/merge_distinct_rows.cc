// SPDX-License-Identifier: Apache-2.0
#include "store/tables/merge_distinct_rows.h"

#include <algorithm>
#include <map>
#include <vector>

namespace recmill::store {
namespace {

struct Lookup {
  LookupSource source;
  float weight = 1.0f;
  float count = 1.0f;
};

void append_lookups(const DistinctRows& batch, int64_t index, int first_feature,
                    std::vector<Lookup>& lookups) {
  for (int64_t i = batch.begins[index]; i < batch.begins[index + 1]; ++i) {
    Lookup lookup{batch.sources[i]};
    lookup.source.feature = static_cast<uint16_t>(lookup.source.feature + first_feature);
    if (!batch.weights.empty()) lookup.weight = batch.weights[i];
    if (!batch.counts.empty()) lookup.count = batch.counts[i];
    lookups.push_back(lookup);
  }
}

}  // namespace

DistinctRows merge_distinct_rows(std::span<const DistinctRows* const> batches, int features) {
  std::map<int64_t, std::vector<Lookup>> by_row;
  bool weighted = false, mean = false;
  for (size_t b = 0; b < batches.size(); ++b) {
    const DistinctRows& batch = *batches[b];
    weighted |= !batch.weights.empty();
    mean |= !batch.counts.empty();
    for (int64_t i = 0; i < batch.count(); ++i) {
      append_lookups(batch, i, static_cast<int>(b) * features, by_row[batch.rows[i]]);
    }
  }
  DistinctRows merged;
  merged.begins.push_back(0);
  for (auto& [row, lookups] : by_row) {
    std::stable_sort(lookups.begin(), lookups.end(), [](const Lookup& a, const Lookup& b) {
      return a.source.slice < b.source.slice;
    });
    merged.rows.push_back(row);
    for (const Lookup& lookup : lookups) {
      merged.sources.push_back(lookup.source);
      if (weighted) merged.weights.push_back(lookup.weight);
      if (mean) merged.counts.push_back(lookup.count);
    }
    merged.begins.push_back(merged.lookups());
  }
  return merged;
}

std::vector<const DistinctRows*> merge_tables(
    std::span<const std::span<const DistinctRows>> batches,
    std::span<const std::vector<size_t>> features_of, std::vector<DistinctRows>& merged) {
  merged.resize(features_of.size());
  std::vector<const DistinctRows*> result;
  for (size_t t = 0; t < features_of.size(); ++t) {
    std::vector<const DistinctRows*> parts;
    for (const auto& batch : batches) parts.push_back(&batch[t]);
    if (parts.size() > 1) {
      merged[t] = merge_distinct_rows(parts, static_cast<int>(features_of[t].size()));
      parts[0] = &merged[t];
    }
    result.push_back(parts[0]);
  }
  return result;
}

}  // namespace recmill::store
