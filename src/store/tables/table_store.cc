// SPDX-License-Identifier: Apache-2.0
#include "store/tables/table_store.h"

#include <utility>

#include "kernels/embedding_pool/embedding_pool.h"
#include "store/batch_check.h"
#include "store/tables/merge_distinct_rows.h"
#include "store/tables/table_rows.h"
#include "table/table_update.h"

namespace recmill::store {
namespace {

/// Those given, or the defaults where none are.
std::vector<kernels::PoolKernel> pool_kernels(const ModelSpec& model,
                                              std::vector<kernels::PoolKernel> given) {
  RECMILL_CHECK(given.empty() || given.size() == model.features.size());
  given.resize(model.features.size());
  return given;
}

}  // namespace

// What prepare() fills in; its memory goes from batch to batch.
struct TableStore::Work {
  std::vector<kernels::PoolTask> pool_tasks;  // [features], own tables; lookup() adds outputs
  kernels::TaskMap task_map;                  // of pool_tasks
  std::vector<int64_t> begins;                // [own slices + 1], sample of the rank's batch
  // [tables], how they are updated; one rank.
  std::vector<const kernels::RowUpdateKernel*> kernels;
  std::vector<DistinctRows> distinct;  // [tables], of those whose kernel needs them
  // Several ranks:
  std::vector<std::vector<table::RowPlace>> row_places;  // [tables], of distinct rows
  std::vector<RowsByRank> by_source;  // [tables], of distinct rows, or of all lookups
  std::vector<char> own_too;          // [tables]: own rows are pooled beside fetched ones
  // [features][lookups]: among the rows fetched, or rows(); empty: as the batch names them.
  std::vector<std::vector<int64_t>> places;
  std::vector<char> is_direct;                // [features]: none of its rows is fetched
  std::vector<SentSums> sent;                 // [tables]; of training
  WantedParts pooled;                         // of tables whose owners pool
  std::vector<std::vector<AskedBags>> asked;  // [ranks][pooled features], once it was looked up
  int64_t copied_words = 0;                   // RowUpdates::copied_words()
  std::vector<int64_t> notes;                 // [ranks], once it was looked up
};

class TableStore::TablePrepared final : public Prepared {
 public:
  TablePrepared(TableStore& store, const Batch& of, std::unique_ptr<Work> filled)
      : batch(of), work(std::move(filled)), store_(store) {}
  ~TablePrepared() override {
    std::lock_guard lock(store_.prepare_mutex_);
    store_.resting_.push_back(std::move(work));
  }

  const Batch batch;
  std::unique_ptr<Work> work;

 private:
  TableStore& store_;
};

TableStore::TableStore(ModelSpec model, std::vector<table::EmbeddingTable> tables,
                       std::unique_ptr<HostRows> host, Communicator& communicator, ThreadPool& pool,
                       StoreKernels kernels, PlacedOptions options)
    : model_(std::move(model)),
      features_of_(model_.tables.size()),
      host_(std::move(host)),
      tables_(std::move(tables)),
      fused_pool_(pool_kernels(model_, std::move(kernels.pool)), kernels.tile),
      row_update_(std::move(kernels.row_update)),
      snapshots_(tables_),
      updater_(kernels.update_floats),
      pool_(pool),
      rank_(communicator.rank()),
      ranks_(communicator.ranks()),
      dedup_fetch_(options.dedup_fetch),
      updates_(communicator, tables_, snapshots_, pool, options, host_ != nullptr) {
  RECMILL_CHECK(row_update_.empty() || row_update_.size() == model_.tables.size());
  const bool fetches = host_ == nullptr || !host_->has_all();
  const size_t at_once = options.one_call || host_ != nullptr ? tables_.size() : 1;
  for (size_t t = 0; fetches && t < tables_.size(); t += at_once)
    fetches_.emplace_back(communicator, std::span(tables_).subspan(t, at_once), pool,
                          options.overlap);
  fused_pool_.use(std::move(kernels.code));
  for (size_t f = 0; f < model_.features.size(); ++f) {
    features_of_[model_.features[f].table].push_back(f);
  }
}

TableStore::~TableStore() = default;

void TableStore::let_owners_pool(const std::vector<bool>& tables, Communicator& communicator) {
  PooledFeatures features;
  for (size_t f = 0; f < model_.features.size(); ++f)
    if (ranks_ > 1 && tables[model_.features[f].table]) features.push_back(f);
  pooled_gradients_.reset();
  pooled_fetch_.reset();
  if (features.empty()) return;
  pooled_fetch_ = std::make_unique<PooledFetch>(communicator, tables_, model_, features, pool_);
  pooled_gradients_ =
      std::make_unique<PooledGradients>(communicator, tables_, model_, std::move(features), pool_);
}

// A feature's lookups without those that owners pool. Of the others a mean is divided at the end.
kernels::FeatureBags TableStore::fetched_bags(size_t feature, const SparseBatch& sparse,
                                              const Work& work) const {
  const int pooled = pooled_fetch_ == nullptr ? -1 : pooled_fetch_->index_of(feature);
  if (pooled < 0)
    return {sparse.features[feature].view(sparse.samples), model_.features[feature].pooling};
  return {work.pooled.features[pooled].fetched.view(sparse.samples), Pooling::sum};
}

Result<std::unique_ptr<Prepared>> TableStore::prepare(const Batch& batch) {
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch, pool_));
  RECMILL_CHECK(slices_of_rank(rank_, ranks_, batch.cut.slices) ==
                (SliceRange{batch.first_slice, batch.end_slice}));
  std::lock_guard lock(prepare_mutex_);
  auto work = resting_.empty() ? std::make_unique<Work>() : std::move(resting_.back());
  if (!resting_.empty()) resting_.pop_back();
  work->begins.clear();
  for (int slice = batch.first_slice; slice <= batch.end_slice; ++slice)
    work->begins.push_back(batch.cut.begin(slice) - batch.cut.begin(batch.first_slice));
  if (pooled_fetch_ != nullptr) pooled_fetch_->plan(*batch.sparse, work->begins, work->pooled);
  fill_pool_tasks(*batch.sparse, *work);
  fused_pool_.map(work->pool_tasks, pool_.threads(), work->task_map);
  work->copied_words = 0;
  work->notes.assign(ranks_, 0);
  if (ranks_ > 1 || batch.purpose == Purpose::train) find_distinct(batch, *work);
  return std::unique_ptr<Prepared>(std::make_unique<TablePrepared>(*this, batch, std::move(work)));
}

const kernels::RowUpdateKernel& TableStore::kernel_of(size_t table, const Batch& batch) const {
  if (!row_update_.empty()) return row_update_[table];
  int64_t lookups = 0;
  for (size_t f : features_of_[table])
    lookups += batch.sparse->features[f].view(batch.sparse->samples).lookups();
  const TableSpec& spec = model_.tables[table];
  return kernels::default_row_update({spec.rows, spec.dim, lookups, batch.cut.slices});
}

void TableStore::find_distinct(const Batch& batch, Work& work) {
  const SparseBatch& sparse = *batch.sparse;
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
      bags.push_back(fetched_bags(f, sparse, work));
    }
    lookups[t] = {model_.tables[t].rows, {bags.data() + first, bags.size() - first}};
  }
  work.distinct.resize(tables_.size());
  finder_.find(lookups, {batch.first_slice, work.begins}, work.distinct, pool_);
  for (const DistinctRows& distinct : work.distinct) distinct_rows_ += distinct.count();
  if (ranks_ == 1) return;
  if (pooled_fetch_ != nullptr)
    for (size_t t = 0; t < tables_.size(); ++t)
      pooled_fetch_->set_means(sparse, features_of_[t], work.distinct[t]);
  work.row_places.resize(tables_.size());
  work.by_source.resize(tables_.size());
  work.own_too.assign(tables_.size(), 0);
  work.places.resize(model_.features.size());
  work.is_direct.assign(model_.features.size(), 0);
  pool_.run(static_cast<int64_t>(tables_.size()),
            [&](int64_t t) { find_sources(static_cast<size_t>(t), work); });
  if (batch.purpose != Purpose::train) return;
  updates_.plan(work.distinct, work.row_places, batch.cut.slices, work.sent);
  work.copied_words = updates_.copied_words(work.row_places);
}

// Where lookups find this rank's rows of a table, or those of all ranks.
const kernels::RowStorage& TableStore::rows(size_t table) const {
  return shares(table) ? host_->rows(table) : tables_[table].rows();
}

// Where each lookup will find its row among those of all ranks.
void TableStore::find_shared(size_t table, Work& work) const {
  const DistinctRows& distinct = work.distinct[table];
  work.by_source[table].of.assign(ranks_, {});  // nothing is fetched
  const bool in_order = host_->in_order(table);
  std::vector<int64_t> indices(in_order ? 0 : distinct.count());
  if (!in_order) host_->find(table, {distinct.rows, work.row_places[table]}, indices.data());
  for (size_t i = 0; i < features_of_[table].size(); ++i) {
    const size_t feature = features_of_[table][i];
    const int64_t first = distinct.feature_begins[i];
    work.is_direct[feature] = 1;
    auto& places = work.places[feature];
    places.resize(in_order ? 0 : distinct.feature_begins[i + 1] - first);
    for (size_t j = 0; j < places.size(); ++j) places[j] = indices[distinct.positions[first + j]];
  }
}

// Where each lookup's row comes from, and where it will then be found.
void TableStore::find_sources(size_t table, Work& work) const {
  const DistinctRows& distinct = work.distinct[table];
  find_places(distinct.rows, tables_[table], work.row_places[table]);
  if (shares(table)) return find_shared(table, work);
  NamedRows fetched{distinct.rows, work.row_places[table]};
  if (!dedup_fetch_) fetched.indices = distinct.positions;
  RowsByRank& by_source = work.by_source[table];
  by_source.to_sources(fetched, tables_[table]);
  const bool whole = !tables_[table].column_split().is_split();
  const table::RowRange own = by_source.of[rank_];
  for (size_t i = 0; i < features_of_[table].size(); ++i) {
    const size_t feature = features_of_[table][i];
    auto& places = work.places[feature];
    places.clear();
    bool is_direct = whole;
    for (int64_t j = distinct.feature_begins[i]; j < distinct.feature_begins[i + 1]; ++j) {
      const int64_t place = by_source.place[dedup_fetch_ ? distinct.positions[j] : j];
      is_direct = is_direct && own.begin <= place && place < own.end;
      places.push_back(place);
    }
    work.is_direct[feature] = is_direct ? 1 : 0;
    if (is_direct) {
      for (int64_t& place : places) place = by_source.slots[place];
    } else {
      work.own_too[table] = 1;
    }
  }
}

// To where rows are stored now, which may be another place than when the batch was prepared, and to
// where they go.
void TableStore::point(std::span<kernels::PoolTask> tasks, Output output) const {
  for (size_t f = 0; f < tasks.size(); ++f) {
    tasks[f].rows = rows(model_.features[f].table);
    tasks[f].out = output[f].data;
    tasks[f].stride = output[f].stride;
  }
}

void TableStore::fill_pool_tasks(const SparseBatch& sparse, Work& work) const {
  work.pool_tasks.clear();
  for (size_t f = 0; f < model_.features.size(); ++f) {
    const auto [bags, pooling] = fetched_bags(f, sparse, work);
    work.pool_tasks.push_back({bags, rows(model_.features[f].table), pooling, nullptr, 0});
  }
}

Status TableStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  auto& of = static_cast<TablePrepared&>(prepared);
  Work& work = *of.work;
  const SparseBatch& sparse = *of.batch.sparse;
  int64_t lookups = 0;
  for (const SparseFeature& feature : sparse.features)
    lookups += feature.view(sparse.samples).lookups();
  lookups_ += lookups;
  if (ranks_ > 1) return lookup_remote(sparse, work, output);
  point(work.pool_tasks, output);
  fused_pool_.run(work.pool_tasks, work.task_map, stream.pool());
  return {};
}

Status TableStore::lookup_remote(const SparseBatch& sparse, Work& work, Output output) {
  const int64_t note = updates_.note(work.copied_words);
  if (host_ != nullptr) RECMILL_RETURN_IF_ERROR(host_->begin(note, work.notes));
  std::vector<WantedRows> wanted;
  for (size_t t = 0; t < tables_.size(); ++t)
    wanted.push_back({&work.by_source[t], work.own_too[t] != 0});
  std::vector<kernels::RowStorage> fetched;
  for (RowFetch& fetch : fetches_) {
    const auto tables = std::span(wanted).subspan(fetched.size(), fetch.tables());
    RECMILL_ASSIGN_OR_RETURN(const auto rows, fetch.fetch(tables, note));
    fetched.insert(fetched.end(), rows.begin(), rows.end());
    work.notes.assign(fetch.notes().begin(), fetch.notes().end());
  }
  std::vector<kernels::PoolTask> tasks = work.pool_tasks;
  point(tasks, output);
  for (size_t f = 0; f < tasks.size(); ++f) {
    const FeatureSpec& feature = model_.features[f];
    RECMILL_CHECK(tasks[f].bags.offsets[0] == 0, feature.name);
    if (!work.places[f].empty()) tasks[f].bags.rows = work.places[f].data();
    if (work.is_direct[f] == 0) tasks[f].rows = fetched[feature.table];
  }
  fused_pool_.run(tasks, work.task_map, pool_);
  if (host_ != nullptr) RECMILL_RETURN_IF_ERROR(host_->end());
  if (pooled_fetch_ == nullptr) return {};
  return pooled_fetch_->fetch(sparse, work.pooled, output, work.asked);
}

Status TableStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  if (updates.empty()) return {};
  const table::RowStep row_step{step.iteration, step.learning_rate_scale};
  if (ranks_ > 1) return update_remote(updates, row_step);
  const int slices = batch_of(updates[0]).cut.slices;
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
    table::TableUpdate task{&tables_[t], distinct[t], gradients[t], slices};
    task.kernel = kernel_of(t, updates);
    found += distinct[t]->count();
    if (task.kernel->needs_distinct_rows()) {
      rows[t] = distinct[t]->rows;
    } else {
      bags[t] = bags_of(t, updates);
      task.bags = {bags[t], spec.rows, spec.dim, slices};
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

Status TableStore::update_remote(std::span<const Update> updates, const table::RowStep& step) {
  std::vector<DistinctRows> merged;
  const auto distinct = distinct_of(updates, merged);
  const auto gradients = gradients_of(updates);
  std::vector<std::vector<table::RowPlace>> merged_places(merged.size());
  std::vector<TableGradients> sources;
  for (size_t t = 0; t < tables_.size(); ++t) {
    sources.push_back({distinct[t], {}, gradients[t]});
    if (updates.size() > 1) {
      find_places(distinct[t]->rows, tables_[t], merged_places[t]);
      sources.back().places = merged_places[t];
    } else {
      sources.back().places = work_of(updates[0]).row_places[t];
    }
    if (!row_update_.empty() && row_update_[t].needs_distinct_rows())
      sources.back().ahead = row_update_[t].values[1];
  }
  std::vector<std::span<const int64_t>> notes;
  for (const Update& update : updates) notes.emplace_back(work_of(update).notes);
  std::span<const SentSums> planned;
  if (updates.size() == 1) planned = work_of(updates[0]).sent;
  const int slices = batch_of(updates[0]).cut.slices;
  std::vector<TableSums> pooled;
  if (pooled_gradients_ != nullptr) {
    RECMILL_ASSIGN_OR_RETURN(pooled, pooled_gradients_->exchange(pooled_of(updates), slices));
  }
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows,
                           updates_.update(sources, planned, notes, slices, step, pooled));
  updated_rows_ += rows;
  return {};
}

const TableStore::Work& TableStore::work_of(const Update& update) {
  return *static_cast<const TablePrepared&>(*update.prepared).work;
}

const Batch& TableStore::batch_of(const Update& update) {
  const auto& prepared = static_cast<const TablePrepared&>(*update.prepared);
  RECMILL_CHECK(prepared.batch.purpose == Purpose::train);
  return prepared.batch;
}

// Over several batches, distinct rows do only where prepare() found them in each.
const kernels::RowUpdateKernel* TableStore::kernel_of(size_t table,
                                                      std::span<const Update> updates) {
  const kernels::RowUpdateKernel* kernel = nullptr;
  for (const Update& update : updates) {
    if (kernel == nullptr || kernel->needs_distinct_rows()) kernel = work_of(update).kernels[table];
  }
  return kernel;
}

// The bags and gradients of the table's features in the first update, in the second ...
std::vector<kernels::BagGradients> TableStore::bags_of(size_t table,
                                                       std::span<const Update> updates) const {
  std::vector<kernels::BagGradients> bags;
  for (const Update& update : updates) {
    const SparseBatch& sparse = *batch_of(update).sparse;
    const auto& prepared = static_cast<const TablePrepared&>(*update.prepared);
    for (size_t f : features_of_[table]) {
      bags.push_back({sparse.features[f].view(sparse.samples),
                      model_.features[f].pooling,
                      {update.gradient[f].data, update.gradient[f].stride},
                      prepared.work->begins});
    }
  }
  return bags;
}

std::vector<PooledUpdate> TableStore::pooled_of(std::span<const Update> updates) {
  std::vector<PooledUpdate> pooled;
  for (const Update& update : updates) {
    const Work& work = *static_cast<const TablePrepared&>(*update.prepared).work;
    pooled.push_back({batch_of(update).sparse, &work.pooled, work.asked, update.gradient});
  }
  return pooled;
}

// By table: the distinct rows over all updates; `merged` keeps what is not some batch's own.
std::vector<const DistinctRows*> TableStore::distinct_of(std::span<const Update> updates,
                                                         std::vector<DistinctRows>& merged) const {
  std::vector<const DistinctRows*> result;
  merged.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    std::vector<const DistinctRows*> parts;
    for (const Update& update : updates) {
      batch_of(update);
      parts.push_back(&work_of(update).distinct[t]);
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
std::vector<std::vector<kernels::GradientRows>> TableStore::gradients_of(
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

Status TableStore::write_rows(const RowBlock& block) {
  return write_table(tables_, block);
}

StoreStats TableStore::stats() const {
  return {lookups_.load(), distinct_rows_.load(), updated_rows_.load()};
}

}  // namespace recmill::store
