// SPDX-License-Identifier: Apache-2.0
#include "store/testing/home_store.h"

#include <numeric>
#include <utility>

#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/row_update/gradient_sums.h"
#include "store/batch_check.h"
#include "store/tables/merge_distinct_rows.h"
#include "store/tables/table_rows.h"
#include "table/apply_optimizer.h"
#include "table/home/image_snapshot.h"
#include "table/row_record.h"
#include "table/table_update.h"

namespace recmill::store::testing {
namespace {

struct HomePrepared final : Prepared {
  explicit HomePrepared(const Batch& of) : batch(of) {}
  const Batch batch;
  std::vector<DistinctRows> distinct;  // [tables]
};

const HomePrepared& prepared_of(const Update& update) {
  return static_cast<const HomePrepared&>(*update.prepared);
}

}  // namespace

HomeStore::HomeStore(ModelSpec model, uint64_t seed, table::RowHome& home)
    : model_(std::move(model)), seed_(seed), features_of_(model_.tables.size()), home_(home) {
  for (size_t f = 0; f < model_.features.size(); ++f)
    features_of_[model_.features[f].table].push_back(f);
}

Result<std::unique_ptr<Prepared>> HomeStore::prepare(const Batch& batch) {
  RECMILL_CHECK(batch.first_slice == 0 && batch.end_slice == batch.cut.slices);
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch));
  auto prepared = std::make_unique<HomePrepared>(batch);
  std::vector<int64_t> begins;
  for (int slice = 0; slice <= batch.cut.slices; ++slice) begins.push_back(batch.cut.begin(slice));
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    std::vector<kernels::FeatureBags> bags;
    for (const size_t f : features_of_[t])
      bags.push_back(
          {batch.sparse->features[f].view(batch.sparse->samples), model_.features[f].pooling});
    prepared->distinct.emplace_back();
    kernels::distinct_rows_reference({model_.tables[t].rows, bags}, {0, begins},
                                     prepared->distinct.back());
  }
  return std::unique_ptr<Prepared>(std::move(prepared));
}

Status HomeStore::lookup(Prepared& prepared, Output output, Stream&) {
  const auto& of = static_cast<const HomePrepared&>(prepared);
  const std::vector<std::span<const int64_t>> wanted = [&] {
    std::vector<std::span<const int64_t>> rows;
    for (const DistinctRows& distinct : of.distinct) rows.emplace_back(distinct.rows);
    return rows;
  }();
  std::lock_guard lock(mutex_);
  RECMILL_ASSIGN_OR_RETURN(const auto fetched, fetch(wanted));
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    for (size_t i = 0; i < features_of_[t].size(); ++i) {
      const size_t f = features_of_[t][i];
      JaggedView bags = of.batch.sparse->features[f].view(of.batch.sparse->samples);
      RECMILL_CHECK(bags.offsets[0] == 0, model_.features[f].name);
      bags.rows = of.distinct[t].positions.data() + of.distinct[t].feature_begins[i];
      kernels::embedding_pool_reference(
          {bags, fetched[t].rows(), model_.features[f].pooling, output[f].data, output[f].stride});
      stats_.lookups += bags.lookups();
    }
  }
  return {};
}

Status HomeStore::update(std::span<const Update> updates, const Step& step, Stream&) {
  if (updates.empty()) return {};
  std::lock_guard lock(mutex_);
  const auto distinct = distinct_of(updates);
  std::vector<std::span<const int64_t>> wanted(model_.tables.size());
  for (size_t t = 0; t < model_.tables.size(); ++t)
    if (!model_.tables[t].frozen) wanted[t] = distinct[t].rows;
  RECMILL_ASSIGN_OR_RETURN(auto fetched, fetch(wanted));
  std::vector<std::vector<int64_t>> rows;
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    rows.emplace_back(wanted[t].begin(), wanted[t].end());
    apply(fetched[t], t, distinct[t], updates, step);
    stats_.updated_rows += std::ssize(wanted[t]);
    stats_.distinct_rows += distinct[t].count();
  }
  put(std::move(rows), fetched);
  return {};
}

// By table, over all updates.
std::vector<DistinctRows> HomeStore::distinct_of(std::span<const Update> updates) const {
  std::vector<DistinctRows> result;
  for (size_t t = 0; t < model_.tables.size(); ++t) {
    std::vector<const DistinctRows*> parts;
    for (const Update& update : updates) parts.push_back(&prepared_of(update).distinct[t]);
    result.push_back(merge_distinct_rows(parts, static_cast<int>(features_of_[t].size())));
  }
  return result;
}

// `table` has the distinct rows, in their order.
void HomeStore::apply(table::EmbeddingTable& table, size_t number, const DistinctRows& distinct,
                      std::span<const Update> updates, const Step& step) const {
  if (model_.tables[number].frozen || distinct.count() == 0) return;
  std::vector<kernels::GradientRows> gradients;
  for (const Update& update : updates)
    for (const size_t f : features_of_[number])
      gradients.push_back({update.gradient[f].data, update.gradient[f].stride});
  const int64_t dim = model_.tables[number].dim;
  std::vector<float> sums(distinct.count() * dim);
  const SliceRange whole{0, prepared_of(updates[0]).batch.cut.slices};
  kernels::sum_gradients_reference({&distinct, gradients, dim}, {nullptr, 0, distinct.count()},
                                   {&whole, 1}, sums.data());
  std::vector<int64_t> slots(distinct.count());
  std::iota(slots.begin(), slots.end(), int64_t{0});
  const table::RowStep row_step{step.iteration, step.learning_rate_scale};
  table::apply_optimizer(model_.tables[number].optimizer, row_step,
                         {table.rows(), slots.data(), distinct.rows.data(), sums.data(),
                          distinct.count(), table::rounding_of(table, row_step)});
}

// A table of the name and the random numbers of the model's, of other rows.
table::EmbeddingTable HomeStore::room_for(size_t table, int64_t rows) const {
  TableSpec spec = model_.tables[table];
  spec.rows = rows;
  return table::EmbeddingTable::without_rows(spec, seed_, table::RowShare(rows, 0, 1));
}

// The rows [tables], as after all puts, in the slots of tables that have as many.
Result<std::vector<table::EmbeddingTable>> HomeStore::fetch(
    const std::vector<std::span<const int64_t>>& rows) {
  std::vector<std::vector<std::byte>> records;
  std::vector<table::FetchedRows> lists;
  for (size_t t = 0; t < rows.size(); ++t) {
    const table::RowRecord record(model_.tables[t]);
    records.emplace_back(rows[t].size() * record.bytes());
    if (!rows[t].empty()) lists.push_back({static_cast<int>(t), rows[t], records[t]});
  }
  RECMILL_RETURN_IF_ERROR(home_.wait(home_.home().fetch(lists, step_)).status);
  std::vector<table::EmbeddingTable> tables;
  for (size_t t = 0; t < rows.size(); ++t) {
    const table::RowRecord record(model_.tables[t]);
    tables.push_back(room_for(t, std::ssize(rows[t])));
    if (rows[t].empty()) continue;
    RECMILL_RETURN_IF_ERROR(tables[t].allocate(nullptr));
    for (int64_t i = 0; i < std::ssize(rows[t]); ++i)
      record.unpack(records[t].data() + i * record.bytes(), tables[t].rows(), i);
  }
  return tables;
}

// Rows [tables], which are in the first slots of `from`.
void HomeStore::put(std::vector<std::vector<int64_t>> rows,
                    const std::vector<table::EmbeddingTable>& from) {
  Put& put = puts_.emplace_back();
  put.rows = std::move(rows);
  std::vector<table::PutRows> lists;
  for (size_t t = 0; t < put.rows.size(); ++t) {
    const table::RowRecord record(model_.tables[t]);
    put.records.emplace_back(put.rows[t].size() * record.bytes());
    for (int64_t i = 0; i < std::ssize(put.rows[t]); ++i)
      record.pack(from[t].rows(), i, put.records[t].data() + i * record.bytes());
    lists.push_back({static_cast<int>(t), put.rows[t], put.records[t]});
  }
  put.ticket = home_.home().put(lists, ++step_);
}

Status HomeStore::finish_puts() {
  for (; !puts_.empty(); puts_.pop_front())
    RECMILL_RETURN_IF_ERROR(home_.wait(puts_.front().ticket).status);
  return {};
}

Status HomeStore::settle() {
  std::lock_guard lock(mutex_);
  return finish_puts();
}

std::unique_ptr<RowSnapshot> HomeStore::snapshot(int64_t) {
  std::lock_guard lock(mutex_);
  auto answer = home_.wait(home_.home().cut(step_, {}));
  if (!answer.status.ok()) return std::make_unique<table::ImageSnapshot>(answer.status);
  return std::make_unique<table::ImageSnapshot>(std::move(answer.image));
}

// What is written over all rows of the table goes back to the home.
Status HomeStore::write_rows(const RowBlock& block) {
  std::lock_guard lock(mutex_);
  const bool is_there = block.table >= 0 && block.table < std::ssize(model_.tables);
  std::vector<std::vector<int64_t>> rows(model_.tables.size());
  if (is_there) {
    rows[block.table].resize(model_.tables[block.table].rows);
    std::iota(rows[block.table].begin(), rows[block.table].end(), int64_t{0});
  }
  RECMILL_ASSIGN_OR_RETURN(auto fetched, fetch({rows.begin(), rows.end()}));
  RECMILL_RETURN_IF_ERROR(write_table(fetched, block));
  put(std::move(rows), fetched);
  return {};
}

StoreStats HomeStore::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace recmill::store::testing
