// SPDX-License-Identifier: Apache-2.0
#include "store/cached/slot_batches.h"

#include <string>

#include "base/status.h"

namespace recmill::store {

SlotBatches::SlotBatches(const ModelSpec& model, const SlotTables& tables)
    : tables_(tables), features_of_(model.tables.size()), slots_(model, tables) {
  for (size_t f = 0; f < model.features.size(); ++f)
    features_of_[model.features[f].table].push_back(f);
}

void SlotBatches::begin(int64_t step, std::span<const RowInSlot> uses, ThreadPool& pool) {
  step_ = step;
  pool.run(tables_.tables(), [&](int64_t t) { slots_.set(static_cast<int>(t), uses); });
}

/// Returns a row that the step's plan lacks, or StepSlots::kNone.
int64_t SlotBatches::replace_rows(const SparseFeature& from, int64_t samples, int table,
                                  SparseFeature& to) const {
  const bool same_offsets = to.one_each && from.one_each && std::ssize(to.offsets) == samples + 1 &&
                            to.offsets[0] == from.offsets[0];
  if (!same_offsets) to.offsets.assign(from.offsets.begin(), from.offsets.begin() + samples + 1);
  to.weights = from.weights;
  to.one_each = from.one_each;
  to.rows.resize(from.rows.size());
  const auto first = static_cast<size_t>(from.offsets[0]);
  const auto lookups = static_cast<size_t>(from.offsets[samples]) - first;
  return slots_.find(table, {from.rows.data() + first, lookups}, {to.rows.data() + first, lookups});
}

Status SlotBatches::replace_rows(const SparseBatch& sparse, SparseBatch& in_slots,
                                 ThreadPool& pool) const {
  in_slots.first = sparse.first;
  in_slots.samples = sparse.samples;
  in_slots.features.resize(sparse.features.size());
  std::vector<int64_t> missing(features_of_.size(), StepSlots::kNone);
  pool.run(std::ssize(features_of_), [&](int64_t t) {
    const int table = static_cast<int>(t);
    for (const size_t f : features_of_[t]) {
      const int64_t row =
          replace_rows(sparse.features[f], sparse.samples, table, in_slots.features[f]);
      if (row != StepSlots::kNone) missing[t] = tables_.begin(table) + row;
    }
  });
  for (const int64_t row : missing)
    if (row != StepSlots::kNone)
      return Status::Failed("the plan of step " + std::to_string(step_) + " lacks row " +
                            tables_.name_of(row));
  return {};
}

}  // namespace recmill::store
