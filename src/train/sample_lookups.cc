// SPDX-License-Identifier: Apache-2.0
#include "train/sample_lookups.h"

#include <algorithm>
#include <map>
#include <string>

namespace recmill::train {
namespace {

double mean_length(const reader::SyntheticIdColumn& column) {
  const double length = column.lengths == reader::LengthLaw::fixed
                            ? static_cast<double>(column.max_length)
                            : column.mean_length;
  return length * (1.0 - column.empty_share) + column.empty_share;
}

}  // namespace

int64_t longest_history(const RunOptions& options) {
  if (options.data.format == DataFormat::behavior_log)
    return options.data.behavior_log.sequence_length;
  return std::max(options.embedding.max_length, options.model.sequence_length);
}

std::vector<double> sample_lookups(const ResolvedRun& run) {
  std::map<std::string, double> lengths;  // of synthetic columns
  if (run.options.data.format == DataFormat::synthetic)
    for (const auto& column : run.options.data.synthetic.ids)
      lengths[column.name] = mean_length(column);
  std::vector<double> lookups;
  size_t own = 0;  // features with ids of their own
  for (const FeatureSpec& feature : run.spec.features) {
    if (feature.same_ids_as >= 0) {
      lookups.push_back(lookups[feature.same_ids_as]);
      continue;
    }
    const auto found = lengths.find(run.graph.features[own++].column);
    lookups.push_back(feature.pooling == Pooling::none
                          ? static_cast<double>(longest_history(run.options))
                      : found == lengths.end() ? 1.0
                                               : std::max(1.0, found->second));
  }
  return lookups;
}

}  // namespace recmill::train
