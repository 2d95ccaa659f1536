// SPDX-License-Identifier: Apache-2.0
#include "store/local_store.h"

#include <utility>

#include "kernels/embedding_pool/embedding_pool.h"
#include "store/batch_check.h"
#include "store/merge_distinct_rows.h"
#include "store/table_rows.h"
#include "table/table_update.h"

namespace recmill::store {

// What prepare() fills in; its memory goes from batch to batch.
struct LocalStore::Work {
  std::vector<kernels::PoolTask> pool_tasks;  // [features], own tables; lookup() adds outputs
  kernels::TaskMap task_map;                  // of pool_tasks
  std::vector<int64_t> begins;                // [own shards + 1], sample of the rank's batch
  // [tables], how they are updated; one rank.
  std::vector<const kernels::RowUpdateKernel*> kernels;
  std::vector<DistinctRows> distinct;        // [tables], of those whose kernel needs them
  std::vector<RowsByOwner> by_owner;         // [tables], of distinct rows; several ranks
  std::vector<std::vector<int64_t>> places;  // [features][lookups]: among the rows fetched
};

class LocalStore::LocalPrepared final : public Prepared {
 public:
  LocalPrepared(LocalStore& store, const Batch& of, std::unique_ptr<Work> filled)
      : batch(of), work(std::move(filled)), store_(store) {}
  ~LocalPrepared() override {
    std::lock_guard lock(store_.prepare_mutex_);
    store_.resting_.push_back(std::move(work));
  }

  const Batch batch;
  std::unique_ptr<Work> work;

 private:
  LocalStore& store_;
};

Result<std::unique_ptr<LocalStore>> LocalStore::create(ModelSpec model, uint64_t seed,
                                                       Communicator& communicator, Pool& pool,
                                                       StoreKernels kernels) {
  RECMILL_CHECK(kernels.row_update.empty() || kernels.row_update.size() == model.tables.size());
  RECMILL_CHECK(kernels.pool.empty() || kernels.pool.size() == model.features.size());
  if (kernels.pool.empty()) kernels.pool.resize(model.features.size());
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, create_tables(model, seed, communicator.rank(), communicator.ranks(), pool));
  return std::unique_ptr<LocalStore>(
      new LocalStore(std::move(model), std::move(tables), communicator, pool, std::move(kernels)));
}

LocalStore::LocalStore(ModelSpec model, std::vector<table::EmbeddingTable> tables,
                       Communicator& communicator, Pool& pool, StoreKernels kernels)
    : model_(std::move(model)),
      features_of_(model_.tables.size()),
      tables_(std::move(tables)),
      fused_pool_(std::move(kernels.pool), kernels.tile),
      row_update_(std::move(kernels.row_update)),
      snapshots_(tables_),
      updater_(kernels.update_floats),
      pool_(pool),
      rank_(communicator.rank()),
      ranks_(communicator.ranks()),
      exchange_(communicator, tables_, snapshots_, pool) {
  fused_pool_.use(std::move(kernels.code));
  for (size_t f = 0; f < model_.features.size(); ++f) {
    features_of_[model_.features[f].table].push_back(f);
  }
}

LocalStore::~LocalStore() = default;

MemoryLedger LocalStore::need(const ModelSpec& model, const ClusterSpec& cluster) const {
  return tables_need(model, cluster.devices.empty() ? 1 : static_cast<int>(cluster.devices.size()));
}

Result<std::unique_ptr<Prepared>> LocalStore::prepare(const Batch& batch) {
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch, pool_));
  RECMILL_CHECK(shards_of_rank(rank_, ranks_, batch.cut.shards) ==
                (ShardRange{batch.first_shard, batch.end_shard}));
  std::lock_guard lock(prepare_mutex_);
  auto work = resting_.empty() ? std::make_unique<Work>() : std::move(resting_.back());
  if (!resting_.empty()) resting_.pop_back();
  fill_pool_tasks(*batch.sparse, work->pool_tasks);
  fused_pool_.map(work->pool_tasks, pool_.threads(), work->task_map);
  if (ranks_ > 1 || batch.purpose == Purpose::train) find_distinct(batch, *work);
  return std::unique_ptr<Prepared>(std::make_unique<LocalPrepared>(*this, batch, std::move(work)));
}

const kernels::RowUpdateKernel& LocalStore::kernel_of(size_t table, const Batch& batch) const {
  if (!row_update_.empty()) return row_update_[table];
  int64_t lookups = 0;
  for (size_t f : features_of_[table])
    lookups += batch.sparse->features[f].view(batch.sparse->samples).lookups();
  const TableSpec& spec = model_.tables[table];
  return kernels::default_row_update({spec.rows, spec.dim, lookups, batch.cut.shards});
}

void LocalStore::find_distinct(const Batch& batch, Work& work) {
  const SparseBatch& sparse = *batch.sparse;
  work.begins.clear();
  for (int shard = batch.first_shard; shard <= batch.end_shard; ++shard) {
    work.begins.push_back(batch.cut.begin(shard) - batch.cut.begin(batch.first_shard));
  }
  std::vector<kernels::FeatureBags> bags;
  bags.reserve(model_.features.size());
  std::vector<kernels::TableLookups> lookups(tables_.size());
  work.kernels.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    // A frozen table is never updated, and with one rank nothing has to be fetched.
    work.kernels[t] = &kernel_of(t, batch);
    const bool needed =
        ranks_ > 1 || (!model_.tables[t].frozen && work.kernels[t]->needs_distinct_rows());
    const size_t first = bags.size();
    for (size_t f : features_of_[t]) {
      if (!needed) continue;
      bags.push_back({sparse.features[f].view(sparse.samples), model_.features[f].pooling});
    }
    lookups[t] = {model_.tables[t].rows, {bags.data() + first, bags.size() - first}};
  }
  work.distinct.resize(tables_.size());
  finder_.find(lookups, {batch.first_shard, work.begins}, work.distinct, pool_);
  for (const DistinctRows& distinct : work.distinct) distinct_rows_ += distinct.count();
  if (ranks_ == 1) return;
  work.by_owner.resize(tables_.size());
  work.places.resize(model_.features.size());
  pool_.run(static_cast<int64_t>(tables_.size()), [&](int64_t t) {
    const DistinctRows& distinct = work.distinct[t];
    work.by_owner[t].group(distinct.rows, tables_[t]);
    for (size_t i = 0; i < features_of_[t].size(); ++i) {
      auto& places = work.places[features_of_[t][i]];
      places.clear();
      for (int64_t j = distinct.feature_begins[i]; j < distinct.feature_begins[i + 1]; ++j) {
        places.push_back(work.by_owner[t].place[distinct.positions[j]]);
      }
    }
  });
}

void LocalStore::set_outputs(Output output, std::span<kernels::PoolTask> tasks) {
  for (size_t f = 0; f < tasks.size(); ++f) {
    tasks[f].out = output[f].data;
    tasks[f].stride = output[f].stride;
  }
}

void LocalStore::fill_pool_tasks(const SparseBatch& sparse,
                                 std::vector<kernels::PoolTask>& tasks) const {
  tasks.clear();
  for (size_t f = 0; f < model_.features.size(); ++f) {
    const FeatureSpec& feature = model_.features[f];
    tasks.push_back({sparse.features[f].view(sparse.samples), tables_[feature.table].rows(),
                     feature.pooling, nullptr, 0});
  }
}

Status LocalStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  Work& work = *static_cast<LocalPrepared&>(prepared).work;
  int64_t lookups = 0;
  for (const kernels::PoolTask& task : work.pool_tasks) lookups += task.bags.lookups();
  lookups_ += lookups;
  if (ranks_ > 1) return lookup_remote(work, output);
  set_outputs(output, work.pool_tasks);
  fused_pool_.run(work.pool_tasks, work.task_map, stream.pool());
  return {};
}

Status LocalStore::lookup_remote(const Work& work, Output output) {
  RECMILL_ASSIGN_OR_RETURN(const auto fetched, exchange_.fetch(work.by_owner));
  std::vector<kernels::PoolTask> tasks = work.pool_tasks;
  set_outputs(output, tasks);
  for (size_t f = 0; f < tasks.size(); ++f) {
    const FeatureSpec& feature = model_.features[f];
    RECMILL_CHECK(tasks[f].bags.offsets[0] == 0, feature.name);
    tasks[f].bags.rows = work.places[f].data();
    tasks[f].rows = fetched[feature.table];
  }
  fused_pool_.run(tasks, work.task_map, pool_);
  return {};
}

Status LocalStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  if (updates.empty()) return {};
  const table::RowStep row_step{step.iteration, step.learning_rate_scale};
  if (ranks_ > 1) return update_remote(updates, row_step);
  const int shards = batch_of(updates[0]).cut.shards;
  std::vector<DistinctRows> merged;
  const auto distinct = distinct_of(updates, merged);
  const auto gradients = gradients_of(updates);
  std::vector<std::vector<kernels::BagGradients>> bags(tables_.size());
  std::vector<std::vector<int64_t>> touched(tables_.size());
  std::vector<std::span<const int64_t>> rows(tables_.size());
  std::vector<table::TableUpdate> tasks;
  int64_t found = 0;  // distinct rows that prepare() counted
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (model_.tables[t].frozen) continue;
    const TableSpec& spec = model_.tables[t];
    table::TableUpdate task{&tables_[t], distinct[t], gradients[t], shards};
    task.kernel = kernel_of(t, updates);
    found += distinct[t]->count();
    if (task.kernel->needs_distinct_rows()) {
      rows[t] = distinct[t]->rows;
    } else {
      bags[t] = bags_of(t, updates);
      task.bags = {bags[t], spec.rows, spec.dim, shards};
      if (snapshots_.wanted()) rows[t] = touched[t] = kernels::touched_rows(task.bags);
    }
    tasks.push_back(task);
  }
  const auto change = snapshots_.before(rows, stream.pool());
  const int64_t updated = updater_.update(tasks, row_step, stream.pool());
  updated_rows_ += updated;
  distinct_rows_ += updated - found;
  return {};
}

Status LocalStore::update_remote(std::span<const Update> updates, const table::RowStep& step) {
  std::vector<DistinctRows> merged;
  const auto distinct = distinct_of(updates, merged);
  const auto gradients = gradients_of(updates);
  std::vector<RowsByOwner> by_owner(tables_.size());
  std::vector<TableGradients> sources;
  for (size_t t = 0; t < tables_.size(); ++t) {
    by_owner[t].group(distinct[t]->rows, tables_[t]);
    sources.push_back({distinct[t], gradients[t], &by_owner[t]});
    if (!row_update_.empty() && row_update_[t].needs_distinct_rows())
      sources.back().ahead = row_update_[t].values[1];
  }
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows,
                           exchange_.update(sources, batch_of(updates[0]).cut.shards, step));
  updated_rows_ += rows;
  return {};
}

const Batch& LocalStore::batch_of(const Update& update) {
  const auto& prepared = static_cast<const LocalPrepared&>(*update.prepared);
  RECMILL_CHECK(prepared.batch.purpose == Purpose::train);
  return prepared.batch;
}

// Over several batches, distinct rows do only where prepare() found them in each.
const kernels::RowUpdateKernel* LocalStore::kernel_of(size_t table,
                                                      std::span<const Update> updates) {
  const kernels::RowUpdateKernel* kernel = nullptr;
  for (const Update& update : updates) {
    const auto& prepared = static_cast<const LocalPrepared&>(*update.prepared);
    if (kernel == nullptr || kernel->needs_distinct_rows()) kernel = prepared.work->kernels[table];
  }
  return kernel;
}

// The bags and gradients of the table's features in the first update, in the second ...
std::vector<kernels::BagGradients> LocalStore::bags_of(size_t table,
                                                       std::span<const Update> updates) const {
  std::vector<kernels::BagGradients> bags;
  for (const Update& update : updates) {
    const SparseBatch& sparse = *batch_of(update).sparse;
    const auto& prepared = static_cast<const LocalPrepared&>(*update.prepared);
    for (size_t f : features_of_[table]) {
      bags.push_back({sparse.features[f].view(sparse.samples),
                      model_.features[f].pooling,
                      {update.gradient[f].data, update.gradient[f].stride},
                      prepared.work->begins});
    }
  }
  return bags;
}

// By table: the distinct rows over all updates; `merged` keeps what is not some batch's own.
std::vector<const DistinctRows*> LocalStore::distinct_of(std::span<const Update> updates,
                                                         std::vector<DistinctRows>& merged) const {
  std::vector<const DistinctRows*> result;
  merged.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    std::vector<const DistinctRows*> parts;
    for (const Update& update : updates) {
      batch_of(update);
      parts.push_back(&static_cast<const LocalPrepared&>(*update.prepared).work->distinct[t]);
    }
    if (parts.size() > 1) {
      merged[t] = merge_distinct_rows(parts, static_cast<int>(features_of_[t].size()));
      parts[0] = &merged[t];
    }
    result.push_back(parts[0]);
  }
  return result;
}

// By table: the gradients of its features in the first update, in the second ...
std::vector<std::vector<kernels::GradientRows>> LocalStore::gradients_of(
    std::span<const Update> updates) const {
  std::vector<std::vector<kernels::GradientRows>> result(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (const Update& update : updates) {
      for (size_t f : features_of_[t]) {
        result[t].push_back({update.gradient[f].data, update.gradient[f].stride});
      }
    }
  }
  return result;
}

Status LocalStore::write_rows(const RowBlock& block) {
  return write_table(tables_, block);
}

StoreStats LocalStore::stats() const {
  return {lookups_.load(), distinct_rows_.load(), updated_rows_.load()};
}

}  // namespace recmill::store
