// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "kernels/distinct_rows/distinct_rows.h"

namespace recmill::kernels {
namespace {

struct Named {
  LookupSource source;
  float weight = 1.0f;
  float count = 1.0f;
};

}  // namespace

void distinct_rows_reference(const TableLookups& table, const LocalSlices& slices,
                             DistinctRows& out) {
  out = DistinctRows{};
  std::map<int64_t, int64_t> index_of;  // row -> index into out.rows
  std::vector<std::vector<Named>> named;
  bool weighted = false, mean = false;
  int64_t lookups = 0;
  for (const auto& feature : table.features) {
    weighted |= feature.bags.weights != nullptr;
    mean |= feature.pooling == Pooling::mean;
    out.feature_begins.push_back(lookups);
    lookups += feature.bags.lookups();
  }
  out.feature_begins.push_back(lookups);
  out.positions.resize(lookups);
  for (int slice = 0; slice < slices.count(); ++slice) {
    for (size_t f = 0; f < table.features.size(); ++f) {
      const auto& [bags, pooling] = table.features[f];
      for (int64_t i = slices.begins[slice]; i < slices.begins[slice + 1]; ++i) {
        for (int64_t j = bags.offsets[i]; j < bags.offsets[i + 1]; ++j) {
          const auto [entry, is_new] = index_of.try_emplace(bags.rows[j], out.rows.size());
          if (is_new) {
            out.rows.push_back(bags.rows[j]);
            named.emplace_back();
          }
          const int64_t lookup = j - bags.offsets[0];
          out.positions[out.feature_begins[f] + lookup] = entry->second;
          Named lookup_of_row;
          lookup_of_row.source = {static_cast<uint32_t>(pooling == Pooling::none ? lookup : i),
                                  static_cast<uint16_t>(f),
                                  static_cast<uint16_t>(slices.first + slice)};
          if (bags.weights != nullptr) lookup_of_row.weight = bags.weights[j];
          if (pooling == Pooling::mean)
            lookup_of_row.count = static_cast<float>(bags.offsets[i + 1] - bags.offsets[i]);
          named[entry->second].push_back(lookup_of_row);
        }
      }
    }
  }
  out.begins.push_back(0);
  for (const auto& row : named) {
    for (const auto& lookup : row) {
      out.sources.push_back(lookup.source);
      if (weighted) out.weights.push_back(lookup.weight);
      if (mean) out.counts.push_back(lookup.count);
    }
    out.begins.push_back(static_cast<int64_t>(out.sources.size()));
  }
}

}  // namespace recmill::kernels
