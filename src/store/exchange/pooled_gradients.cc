// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/pooled_gradients.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "comm/begin_messages.h"
#include "comm/slice_tree.h"

namespace recmill::store {
namespace {

constexpr int64_t kRowsATask = 256;

}  // namespace

PooledGradients::PooledGradients(Communicator& communicator,
                                 const std::vector<table::EmbeddingTable>& tables,
                                 const ModelSpec& model, PooledFeatures features, ThreadPool& pool)
    : communicator_(communicator),
      tables_(tables),
      model_(model),
      features_(std::move(features)),
      pool_(pool),
      outgoing_(communicator.ranks()),
      incoming_(communicator.ranks()),
      table_index_(features_.size()) {
  for (size_t k = 0; k < features_.size(); ++k) {
    const auto table = static_cast<size_t>(model_.features[features_[k]].table);
    if (tables_[table].spec().frozen) continue;
    const auto found = std::ranges::find(pooled_, table, &Table::table);
    table_index_[k] = found - pooled_.begin();
    Table& of = found == pooled_.end() ? pooled_.emplace_back() : *found;
    of.table = table;
    ++of.features;
  }
  distinct_.resize(pooled_.size());
}

Result<std::vector<TableSums>> PooledGradients::exchange(std::span<const PooledUpdate> updates,
                                                         int slices) {
  pool_.run(communicator_.ranks(), [&](int64_t rank) { fill(updates, static_cast<int>(rank)); });
  RECMILL_RETURN_IF_ERROR(bring(updates));
  find_rows(updates, slices);
  std::vector<TableSums> sums(tables_.size());
  for (size_t p = 0; p < pooled_.size(); ++p) {
    sum(p, slices);
    sums[pooled_[p].table] = {distinct_[p].rows, {pooled_[p].begins, pooled_[p].parts}};
  }
  return sums;
}

void PooledGradients::fill(std::span<const PooledUpdate> updates, int rank) {
  outgoing_[rank].clear();
  for (const PooledUpdate& update : updates)
    for (size_t k = 0; k < features_.size(); ++k)
      if (!table_of(k).spec().frozen) append(update, k, rank);
}

// A mean's gradient is divided by the lookups of the whole bag.
void PooledGradients::append(const PooledUpdate& update, size_t feature, int rank) {
  const size_t f = features_[feature];
  const ColumnRange columns = table_of(feature).columns_of(rank);
  const auto& samples = update.wanted->features[feature].parts[rank].samples;
  const auto& offsets = update.sparse->features[f].offsets;
  const bool mean = model_.features[f].pooling == Pooling::mean;
  std::vector<float>& out = outgoing_[rank];
  for (const int64_t sample : samples) {
    const float* row = update.gradient[f].data + sample * update.gradient[f].stride + columns.first;
    const size_t first = out.size();
    out.insert(out.end(), row, row + columns.count);
    const auto lookups = static_cast<float>(offsets[sample + 1] - offsets[sample]);
    for (size_t e = first; mean && e < out.size(); ++e) out[e] = out[e] / lookups;
  }
}

Status PooledGradients::bring(std::span<const PooledUpdate> updates) {
  const int own = communicator_.rank();
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == own) continue;
    int64_t floats = 0;
    for (const PooledUpdate& update : updates)
      for (size_t k = 0; k < features_.size(); ++k)
        if (!table_of(k).spec().frozen)
          floats += update.asked[rank][k].bags() * table_of(k).columns().count;
    incoming_[rank].resize(floats);
  }
  RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator_.exchange(0));
  RECMILL_RETURN_IF_ERROR(begin_messages(*exchange, own, outgoing_, incoming_, 0));
  RECMILL_RETURN_IF_ERROR(exchange->wait(0));
  std::swap(incoming_[own], outgoing_[own]);
  return {};
}

// To the finder the bags of one slice, update and feature are a feature, all of its only slice; the
// sources then get the slices that they are of.
void PooledGradients::find_rows(std::span<const PooledUpdate> updates, int slices) {
  for (Table& of : pooled_) {
    of.bags.clear();
    of.gradients.clear();
  }
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const int own = slices_of_rank(rank, communicator_.ranks(), slices).size();
    for (int slice = 0; slice < own; ++slice) collect(updates, rank, slice);
  }
  const std::array<int64_t, 2> begins{0, even_out()};
  std::vector<kernels::TableLookups> lookups;
  for (const Table& of : pooled_) lookups.push_back({tables_[of.table].spec().rows, of.bags});
  finder_.find(lookups, {0, begins}, distinct_, pool_);
  for (size_t p = 0; p < pooled_.size(); ++p) {
    const size_t in_slice = pooled_[p].features * updates.size();
    for (LookupSource& source : distinct_[p].sources)
      source.slice = static_cast<uint16_t>(source.feature / in_slice);
  }
}

// The bags of one of the rank's own slices, and their gradients.
void PooledGradients::collect(std::span<const PooledUpdate> updates, int rank, int slice) {
  const float* gradient = incoming_[rank].data();
  for (const PooledUpdate& update : updates) {
    for (size_t k = 0; k < features_.size(); ++k) {
      if (table_of(k).spec().frozen) continue;
      const AskedBags& asked = update.asked[rank][k];
      const int64_t begin = asked.slice_begins[slice], end = asked.slice_begins[slice + 1];
      const int64_t columns = table_of(k).columns().count;
      Table& of = pooled_[table_index_[k]];
      of.bags.push_back({asked.view(asked.rows).slice(begin, end), Pooling::sum});
      of.gradients.push_back({gradient + begin * columns, columns});
      gradient += asked.bags() * columns;
    }
  }
}

// All get as many bags, empty ones at the end; how many, it says.
int64_t PooledGradients::even_out() {
  int64_t longest = 0;
  for (const Table& of : pooled_)
    for (const auto& feature : of.bags) longest = std::max(longest, feature.bags.samples);
  offsets_.clear();
  for (Table& of : pooled_) {
    for (auto& feature : of.bags) {
      JaggedView& bags = feature.bags;
      auto& offsets = offsets_.emplace_back(bags.offsets, bags.offsets + bags.samples + 1);
      offsets.resize(longest + 1, offsets.back());
      bags.offsets = offsets.data();
      bags.samples = longest;
    }
  }
  return longest;
}

void PooledGradients::sum(size_t pooled, int slices) {
  Table& of = pooled_[pooled];
  const DistinctRows& distinct = distinct_[pooled];
  const int64_t rows = distinct.count(), columns = tables_[of.table].columns().count;
  const SliceRange all{0, slices};
  of.sums.resize(rows * columns);
  pool_.run_ranges(rows, kRowsATask, [&](int64_t begin, int64_t end) {
    kernels::sum_gradients({&distinct, of.gradients, columns}, {nullptr, begin, end - begin},
                           {&all, 1}, of.sums.data() + begin * columns);
  });
  of.begins.resize(rows + 1);
  std::iota(of.begins.begin(), of.begins.end(), 0);
  of.parts.clear();
  for (int64_t row = 0; row < rows; ++row) of.parts.push_back({of.sums.data() + row * columns, 0});
}

}  // namespace recmill::store
