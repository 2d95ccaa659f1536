// SPDX-License-Identifier: Apache-2.0
#include "store/tables/local_store.h"

#include <utility>

#include "store/batch_check.h"
#include "store/tables/merge_distinct_rows.h"
#include "store/tables/table_rows.h"

namespace recmill::store {

// What prepare() fills in.
struct LocalStore::Work {
  std::vector<kernels::PoolTask> pool_tasks;  // [features]; lookup() adds rows and outputs
  kernels::TaskMap task_map;                  // of pool_tasks
  std::vector<int64_t> begins;                // [slices + 1], samples
  // Of training:
  std::vector<const kernels::RowUpdateKernel*> kernels;  // [tables], how they are updated
  std::vector<DistinctRows> distinct;                    // [tables], where the kernel needs them
};

LocalStore::LocalStore(std::unique_ptr<RankTables> tables)
    : of_(std::move(tables)), updater_(of_->update_floats) {}

LocalStore::~LocalStore() = default;

Result<std::unique_ptr<Prepared>> LocalStore::prepare(const Batch& batch) {
  RECMILL_RETURN_IF_ERROR(check_batch(of_->model, batch, of_->pool));
  RECMILL_CHECK(batch.first_slice == 0 && batch.end_slice == batch.cut.slices);
  auto work = batches_.take();
  slice_begins(batch, work->begins);
  const SparseBatch& sparse = *batch.sparse;
  work->pool_tasks.clear();
  for (size_t f = 0; f < of_->model.features.size(); ++f) {
    const FeatureSpec& feature = of_->model.features[f];
    work->pool_tasks.push_back({sparse.features[f].view(sparse.samples),
                                of_->tables[feature.table].rows(), feature.pooling, nullptr, 0});
  }
  of_->fused_pool.map(work->pool_tasks, of_->pool.threads(), work->task_map);
  if (batch.purpose == Purpose::train) {
    const std::lock_guard lock(prepare_mutex_);
    find_distinct(batch, *work);
  }
  return batches_.prepared(batch, std::move(work));
}

const kernels::RowUpdateKernel& LocalStore::kernel_of(size_t table, const Batch& batch) const {
  if (!of_->row_update.empty()) return of_->row_update[table];
  int64_t lookups = 0;
  for (size_t f : of_->features_of[table])
    lookups += batch.sparse->features[f].view(batch.sparse->samples).lookups();
  const TableSpec& spec = of_->model.tables[table];
  return kernels::default_row_update({spec.rows, spec.dim, lookups, batch.cut.slices});
}

// Of tables that are updated, by a kernel that needs them.
void LocalStore::find_distinct(const Batch& batch, Work& work) {
  const ModelSpec& model = of_->model;
  const size_t tables = of_->tables.size();
  std::vector<kernels::FeatureBags> bags;
  bags.reserve(model.features.size());
  std::vector<kernels::TableLookups> lookups(tables);
  work.kernels.resize(tables);
  for (size_t t = 0; t < tables; ++t) {
    work.kernels[t] = &kernel_of(t, batch);
    const size_t first = bags.size();
    if (!model.tables[t].frozen && work.kernels[t]->needs_distinct_rows()) {
      for (size_t f : of_->features_of[t])
        bags.push_back({work.pool_tasks[f].bags, model.features[f].pooling});
    }
    lookups[t] = {model.tables[t].rows, {bags.data() + first, bags.size() - first}};
  }
  work.distinct.resize(tables);
  finder_.find(lookups, {batch.first_slice, work.begins}, work.distinct, of_->pool);
  for (const DistinctRows& distinct : work.distinct) of_->distinct_rows += distinct.count();
}

// From where rows are now, which may be another place than when the batch was prepared.
Status LocalStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  Work& work = Batches::work_of(prepared);
  of_->count_lookups(*Batches::batch_of(prepared).sparse);
  for (size_t f = 0; f < work.pool_tasks.size(); ++f) {
    kernels::PoolTask& task = work.pool_tasks[f];
    task.rows = of_->tables[of_->model.features[f].table].rows();
    task.out = output[f].data;
    task.stride = output[f].stride;
  }
  of_->fused_pool.run(work.pool_tasks, work.task_map, stream.pool());
  return {};
}

Status LocalStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  if (updates.empty()) return {};
  const int slices = Batches::batch_of(updates[0]).cut.slices;
  std::vector<std::span<const DistinctRows>> batches;
  for (const Update& update : updates) batches.emplace_back(Batches::work_of(update).distinct);
  std::vector<DistinctRows> merged;
  const auto distinct = merge_tables(batches, of_->features_of, merged);
  const auto gradients = of_->gradients_of(updates);
  const size_t tables = of_->tables.size();
  std::vector<std::vector<kernels::BagGradients>> bags(tables);
  std::vector<std::vector<int64_t>> touched(tables);
  std::vector<std::span<const int64_t>> rows(tables);
  std::vector<table::TableUpdate> tasks;
  int64_t found = 0;  // distinct rows that prepare() counted
  for (size_t t = 0; t < tables; ++t) {
    const TableSpec& spec = of_->model.tables[t];
    if (spec.frozen) continue;
    table::TableUpdate task{&of_->tables[t], distinct[t], gradients[t], slices};
    task.kernel = kernel_of(t, updates);
    if (!of_->names.empty()) task.names = of_->names[t];
    found += distinct[t]->count();
    if (task.kernel->needs_distinct_rows()) {
      rows[t] = distinct[t]->rows;
    } else {
      bags[t] = bags_of(t, updates);
      task.bags = {bags[t], spec.rows, spec.dim, slices};
      if (of_->snapshots.wanted()) rows[t] = touched[t] = kernels::touched_rows(task.bags);
    }
    tasks.push_back(task);
  }
  const auto change = of_->snapshots.before(rows, stream.pool());
  const int64_t updated =
      updater_.update(tasks, {step.iteration, step.learning_rate_scale}, stream.pool());
  of_->updated_rows += updated;
  of_->distinct_rows += updated - found;
  return {};
}

// Over several batches, distinct rows do only where prepare() found them in each.
const kernels::RowUpdateKernel* LocalStore::kernel_of(size_t table,
                                                      std::span<const Update> updates) {
  const kernels::RowUpdateKernel* kernel = nullptr;
  for (const Update& update : updates) {
    if (kernel == nullptr || kernel->needs_distinct_rows())
      kernel = Batches::work_of(update).kernels[table];
  }
  return kernel;
}

// The bags and gradients of the table's features in the first update, in the second ...
std::vector<kernels::BagGradients> LocalStore::bags_of(size_t table,
                                                       std::span<const Update> updates) const {
  std::vector<kernels::BagGradients> bags;
  for (const Update& update : updates) {
    const SparseBatch& sparse = *Batches::batch_of(update).sparse;
    for (size_t f : of_->features_of[table]) {
      bags.push_back({sparse.features[f].view(sparse.samples),
                      of_->model.features[f].pooling,
                      {update.gradient[f].data, update.gradient[f].stride},
                      Batches::work_of(update).begins});
    }
  }
  return bags;
}

Status LocalStore::write_rows(const RowBlock& block) {
  return write_table(of_->tables, block);
}

}  // namespace recmill::store
