// SPDX-License-Identifier: Apache-2.0
#include "store/cached/outside_lookups.h"

#include <algorithm>

#include "store/batch_check.h"
#include "table/embedding_table.h"

namespace recmill::store {

OutsideLookups::OutsideLookups(const ModelSpec& model, const SlotTables& tables,
                               std::span<const table::RowRecord> records, uint64_t seed,
                               ThreadPool& pool)
    : model_(model),
      tables_(tables),
      records_(records),
      seed_(seed),
      pool_(pool),
      features_of_(model.tables.size()),
      fused_pool_(std::vector<kernels::PoolKernel>(model.features.size()), kernels::kWholeFeature) {
  for (size_t f = 0; f < model.features.size(); ++f)
    features_of_[model.features[f].table].push_back(f);
}

void OutsideLookups::prepare(const Batch& batch, std::vector<DistinctRows>& distinct) {
  std::vector<int64_t> begins;
  slice_begins(batch, begins);
  std::vector<std::vector<kernels::FeatureBags>> bags(model_.tables.size());
  std::vector<kernels::TableLookups> lookups;
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    for (const size_t f : features_of_[t])
      bags[t].push_back(
          {batch.sparse->features[f].view(batch.sparse->samples), model_.features[f].pooling});
    lookups.push_back({model_.tables[t].rows, bags[t]});
  }
  distinct.resize(model_.tables.size());
  std::lock_guard lock(mutex_);
  finder_.find(lookups, {batch.first_slice, begins}, distinct, pool_);
}

Status OutsideLookups::look_up(const Batch& batch, std::span<const DistinctRows> distinct,
                               const Fetch& fetch, Output output, Stream& stream) {
  std::vector<RowInSlot> rows;  // of all tables
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    const auto& of_table = distinct[t].rows;
    for (size_t i = 0; i < of_table.size(); ++i)
      rows.push_back({tables_.begin(static_cast<int>(t)) + of_table[i], static_cast<int32_t>(i)});
  }
  std::ranges::sort(rows);
  RowRecords records(tables_, records_, rows);
  RECMILL_RETURN_IF_ERROR(fetch(rows, records));
  std::vector<table::EmbeddingTable> rooms;
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    TableSpec spec = model_.tables[t];
    spec.rows = std::max<int64_t>(distinct[t].count(), 1);
    rooms.push_back(
        table::EmbeddingTable::without_rows(spec, seed_, table::RowShare(spec.rows, 0, 1)));
    RECMILL_RETURN_IF_ERROR(rooms[t].allocate(nullptr));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const int table = tables_.table_of(rows[i].row);
    records_[table].unpack(records.record(i), rooms[table].rows(), rows[i].slot);
  }
  std::vector<kernels::PoolTask> tasks(model_.features.size());
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    for (size_t i = 0; i < features_of_[t].size(); ++i) {
      const size_t f = features_of_[t][i];
      const SparseFeature& feature = batch.sparse->features[f];
      kernels::PoolTask& task = tasks[f];
      task.bags = feature.view(batch.sparse->samples);
      task.bags.rows =
          distinct[t].positions.data() + distinct[t].feature_begins[i] - feature.offsets[0];
      task.rows = rooms[t].rows();
      task.pooling = model_.features[f].pooling;
      task.out = output[f].data;
      task.stride = output[f].stride;
      lookups_ += task.bags.lookups();
    }
  }
  kernels::TaskMap map;
  fused_pool_.map(tasks, stream.pool().threads(), map);
  fused_pool_.run(tasks, map, stream.pool());
  return {};
}

}  // namespace recmill::store
