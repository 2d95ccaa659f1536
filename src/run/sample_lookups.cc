// SPDX-License-Identifier: Apache-2.0
#include "run/sample_lookups.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/json/json.h"
#include "batch/feature_layout.h"
#include "step/data/cache_step_planner.h"

namespace recmill::train {
namespace {

using preprocess::Chain;
using preprocess::OpSpec;

constexpr const char* kCut = "first_x";
constexpr const char* kFill = "fill_missing_id";

const OpSpec* find_op(const Chain& chain, const std::string& name) {
  const auto found = std::ranges::find(chain.ops, name, &OpSpec::op);
  return found == chain.ops.end() ? nullptr : &*found;
}

/// Ids of a bag that is kept, at most.
int64_t longest_kept(const Chain& chain) {
  const OpSpec* const cut = find_op(chain, kCut);
  return cut == nullptr ? INT64_MAX : cut->parameters->at("x").get<int64_t>();
}

/// At most: where bags are cut whose lengths differ, those that are shorter anyway make it less.
double mean_length(const reader::SyntheticIdColumn& column, const Chain& chain) {
  double length = column.lengths == reader::LengthLaw::fixed
                      ? static_cast<double>(column.max_length)
                      : column.mean_length;
  length = std::min(length, static_cast<double>(longest_kept(chain)));
  const double found = length * (1.0 - column.empty_share);
  return find_op(chain, kFill) == nullptr ? found : std::max(1.0, found + column.empty_share);
}

/// Whether ids may have no row, and are left out then.
bool drops(const preprocess::FeatureGraph& graph, const Chain& chain) {
  constexpr const char* kDrop = "drop";
  if (const OpSpec* const direct = find_op(chain, "direct"); direct != nullptr)
    return direct->parameters->at("out_of_range") == kDrop;
  const OpSpec* const categorify = find_op(chain, "categorify");
  return categorify != nullptr &&
         std::ranges::any_of(graph.dictionaries, [&](const preprocess::DictionarySpec& of) {
           return (of.when_full == kDrop || of.drops_unseen()) &&
                  categorify->parameters->at("dictionary") == of.name;
         });
}

std::map<std::string, reader::SyntheticIdColumn> synthetic_columns(const RunOptions& options) {
  std::map<std::string, reader::SyntheticIdColumn> columns;
  if (options.data.format == DataFormat::synthetic)
    for (const auto& column : options.data.synthetic.ids) columns[column.name] = column;
  return columns;
}

}  // namespace

int64_t longest_history(const RunOptions& options) {
  if (options.data.format == DataFormat::behavior_log)
    return options.data.behavior_log.sequence_length;
  return std::max(options.embedding.max_length, options.model.sequence_length);
}

std::vector<double> sample_lookups(const ResolvedRun& run) {
  const auto columns = synthetic_columns(run.options);
  std::vector<double> lookups;
  size_t own = 0;  // features with ids of their own
  for (const FeatureSpec& feature : run.spec.features) {
    if (feature.same_ids_as >= 0) {
      lookups.push_back(lookups[feature.same_ids_as]);
      continue;
    }
    const Chain& chain = run.graph.features[own++];
    const auto found = columns.find(chain.column);
    lookups.push_back(!is_pooled(feature.pooling)
                          ? static_cast<double>(longest_history(run.options))
                      : found == columns.end() ? 1.0
                                               : mean_length(found->second, chain));
  }
  return lookups;
}

bool lookups_are_certain(const ResolvedRun& run) {
  const auto columns = synthetic_columns(run.options);
  const auto are_cut = [&](const Chain& chain) {
    const auto found = columns.find(chain.column);
    return found != columns.end() && found->second.lengths != reader::LengthLaw::fixed &&
           found->second.max_length > longest_kept(chain);
  };
  const auto may_be_fewer = [&](const Chain& chain) {
    return chain.source == preprocess::Source::ids &&
           (find_op(chain, kFill) == nullptr || drops(run.graph, chain) || are_cut(chain));
  };
  const FeatureLayout features(run.spec);
  return features.sequences().empty() && std::ranges::none_of(run.graph.features, may_be_fewer);
}

int64_t queued_batches(const RunOptions& options) {
  if (options.embedding.store != StoreKind::cached) return options.train.queue;
  const lookahead::CacheOptions cache{options.lookahead.batches, options.lookahead.prefetch};
  const int64_t fetched = std::min(cache.prefetch, CacheStepPlanner::ahead(cache));
  return std::max<int64_t>(options.train.queue, fetched + 1);
}

int64_t batches_in_hand(const RunOptions& options) {
  return queued_batches(options) + 2;
}

}  // namespace recmill::train
