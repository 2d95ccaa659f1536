// SPDX-License-Identifier: Apache-2.0
#include "hotset/hot_inputs.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace recmill::hotset {
namespace {

constexpr int64_t kInputs = 1024;  // of one task

}  // namespace

/// What one task has counted.
struct HotInputs::Part {
  int64_t hot_inputs = 0, far_lookups = 0, lookups = 0;
  std::unordered_map<int64_t, int64_t> by_least, lookups_by_count;
  std::vector<int64_t> cold_by_table, far_by_table;
};

HotInputs::HotInputs(const HotProblem& problem, const ModelSpec& model,
                     const stats::AccessCounter& counts, const HotSet& set, bool judges)
    : problem_(problem),
      counts_(counts),
      set_(set),
      rows_(set),
      judges_(judges),
      cold_by_table_(model.tables.size()),
      far_by_table_(model.tables.size()) {
  for (const FeatureSpec& feature : model.features)
    table_of_feature_.push_back(static_cast<size_t>(feature.table));
}

void HotInputs::count_input(const SparseBatch& batch, int64_t sample, Part& part) {
  constexpr int kNone = -1, kSeveral = -2;
  int64_t least = kAlways;
  int cold_table = kNone;
  for (size_t f = 0; f < batch.features.size(); ++f) {
    const SparseFeature& feature = batch.features[f];
    const size_t table = table_of_feature_[f];
    const int64_t begin = feature.offsets[static_cast<size_t>(sample)];
    const int64_t end = feature.offsets[static_cast<size_t>(sample) + 1];
    part.lookups += end - begin;
    if (problem_.tables[table].always_hot) continue;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = feature.rows[static_cast<size_t>(i)];
      const int64_t count = counts_.count(table, row);
      least = std::min(least, count);
      if (judges_) ++part.lookups_by_count[count];
      if (rows_.is_hot(table, row)) continue;
      ++part.far_lookups;
      ++part.far_by_table[table];
      const auto number = static_cast<int>(table);
      cold_table = cold_table == kNone || cold_table == number ? number : kSeveral;
    }
  }
  ++part.by_least[least];
  part.hot_inputs += cold_table == kNone ? 1 : 0;
  is_hot_[static_cast<size_t>(sample)] = cold_table == kNone ? 1 : 0;
  if (cold_table >= 0) ++part.cold_by_table[static_cast<size_t>(cold_table)];
}

void HotInputs::add(const SparseBatch& batch, ThreadPool& pool) {
  is_hot_.resize(static_cast<size_t>(batch.samples));
  std::mutex mutex;
  pool.run_ranges(batch.samples, kInputs, [&](int64_t begin, int64_t end) {
    Part part;
    part.cold_by_table.resize(cold_by_table_.size());
    part.far_by_table.resize(far_by_table_.size());
    for (int64_t sample = begin; sample < end; ++sample) count_input(batch, sample, part);
    const std::lock_guard lock(mutex);
    hot_inputs_ += part.hot_inputs;
    far_lookups_ += part.far_lookups;
    lookups_ += part.lookups;
    for (const auto& [least, inputs] : part.by_least) by_least_[least] += inputs;
    for (const auto& [count, lookups] : part.lookups_by_count) lookups_by_count_[count] += lookups;
    for (size_t t = 0; t < cold_by_table_.size(); ++t) {
      cold_by_table_[t] += part.cold_by_table[t];
      far_by_table_[t] += part.far_by_table[t];
    }
  });
  inputs_ += batch.samples;
}

int64_t HotInputs::far_lookups(int64_t cutoff) const {
  int64_t far = 0;
  for (auto of = lookups_by_count_.begin(); of != lookups_by_count_.lower_bound(cutoff); ++of)
    far += of->second;
  return far;
}

HotFigures HotInputs::figures() const {
  HotFigures figures{0, 0, hot_inputs_, far_lookups_};
  for (size_t t = 0; t < set_.tables.size(); ++t) {
    figures.hot_rows += set_.tables[t].hot();
    figures.hot_bytes += set_.tables[t].hot() * problem_.tables[t].row_bytes;
  }
  return figures;
}

}  // namespace recmill::hotset
