// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/sharded_store.h"

#include <utility>

#include "comm/gather_values.h"
#include "store/batch_check.h"
#include "store/tables/merge_distinct_rows.h"
#include "store/tables/table_rows.h"

namespace recmill::store {

// What prepare() fills in.
struct ShardedStore::Work {
  std::vector<kernels::PoolTask> pool_tasks;  // [features], of own tables
  kernels::TaskMap task_map;                  // of pool_tasks
  std::vector<int64_t> begins;                // [own slices + 1], sample of the rank's batch
  std::vector<DistinctRows> distinct;         // [tables]
  std::vector<std::vector<table::RowPlace>> row_places;  // [tables], of distinct rows
  std::vector<RowsByRank> by_source;  // [tables], of distinct rows, or of all lookups
  std::vector<char> own_too;          // [tables]: own rows are pooled beside fetched ones
  // [features][lookups]: among the rows fetched, or rows(); empty: as the batch names them.
  std::vector<std::vector<int64_t>> places;
  std::vector<char> is_direct;                 // [features]: none of its rows is fetched
  std::vector<SentSums> sent;                  // [tables]; of training
  WantedParts pooled;                          // of tables whose owners pool
  std::vector<std::vector<AskedBags>> asked;   // [ranks][pooled features], once it was looked up
  int64_t copied_words = 0;                    // RowUpdates::copied_words()
  std::vector<int64_t> notes;                  // [ranks], once it was looked up
  std::shared_ptr<const UnaskedRows> unasked;  // null: rows of others are asked for
  bool asks_nobody = false;                    // and neither does another rank
  int64_t note = 0;                            // to be told with the update then
};

ShardedStore::ShardedStore(std::unique_ptr<RankTables> tables, std::unique_ptr<HostRows> host,
                           Communicator& communicator, ShardedOptions options,
                           const std::vector<bool>& owners_pool)
    : host_(std::move(host)),
      of_(std::move(tables)),
      rank_(communicator.rank()),
      ranks_(communicator.ranks()),
      dedup_fetch_(options.dedup_fetch),
      hot_rows_everywhere_(options.hot_rows_everywhere),
      communicator_(communicator),
      updates_(communicator, *of_, options, host_ != nullptr) {
  const std::span<const table::EmbeddingTable> all = of_->tables;
  const bool fetches = host_ == nullptr || !host_->has_all();
  const size_t at_once = options.one_call || host_ != nullptr ? all.size() : 1;
  for (size_t t = 0; fetches && t < all.size(); t += at_once)
    fetches_.emplace_back(communicator, all.subspan(t, at_once), of_->pool, options.overlap);
  if (!owners_pool.empty()) let_owners_pool(owners_pool, communicator);
}

ShardedStore::~ShardedStore() = default;

void ShardedStore::let_owners_pool(const std::vector<bool>& tables, Communicator& communicator) {
  PooledFeatures features;
  for (size_t f = 0; f < of_->model.features.size(); ++f)
    if (tables[of_->model.features[f].table]) features.push_back(f);
  if (features.empty()) return;
  pooled_fetch_ =
      std::make_unique<PooledFetch>(communicator, of_->tables, of_->model, features, of_->pool);
  pooled_gradients_ = std::make_unique<PooledGradients>(communicator, of_->tables, of_->model,
                                                        std::move(features), of_->pool);
}

// A feature's lookups without those that owners pool. Of the others a mean is divided at the end.
kernels::FeatureBags ShardedStore::fetched_bags(size_t feature, const SparseBatch& sparse,
                                                const Work& work) const {
  const int pooled = pooled_fetch_ == nullptr ? -1 : pooled_fetch_->index_of(feature);
  if (pooled < 0)
    return {sparse.features[feature].view(sparse.samples), of_->model.features[feature].pooling};
  return {work.pooled.features[pooled].fetched.view(sparse.samples), Pooling::sum};
}

Result<std::unique_ptr<Prepared>> ShardedStore::prepare(const Batch& batch) {
  return prepare(batch, nullptr);
}

Result<std::unique_ptr<Prepared>> ShardedStore::prepare(const Batch& batch,
                                                        std::shared_ptr<const UnaskedRows> rows) {
  RECMILL_RETURN_IF_ERROR(check_batch(of_->model, batch, of_->pool));
  RECMILL_CHECK(slices_of_rank(rank_, ranks_, batch.cut.slices) ==
                (SliceRange{batch.first_slice, batch.end_slice}));
  const std::lock_guard lock(prepare_mutex_);
  auto work = batches_.take();
  slice_begins(batch, work->begins);
  if (pooled_fetch_ != nullptr) pooled_fetch_->plan(*batch.sparse, work->begins, work->pooled);
  fill_pool_tasks(*batch.sparse, *work);
  of_->fused_pool.map(work->pool_tasks, of_->pool.threads(), work->task_map);
  work->copied_words = 0;
  work->unasked = std::move(rows);
  work->notes.assign(ranks_, 0);
  find_distinct(batch, *work);
  RECMILL_RETURN_IF_ERROR(see_who_asks(batch, *work));
  if (batch.purpose == Purpose::train) {
    updates_.plan(work->distinct, work->row_places, batch.cut.slices, work->sent);
    work->copied_words = updates_.copied_words(work->row_places);
  }
  return batches_.prepared(batch, std::move(work));
}

// All ranks come to the same.
Status ShardedStore::see_who_asks(const Batch& batch, Work& work) const {
  work.asks_nobody = hot_rows_everywhere_ && host_ == nullptr && pooled_fetch_ == nullptr &&
                     work.unasked == nullptr && batch.plan != nullptr && batch.plan->all_hot;
  if (!work.asks_nobody) return {};
  for (size_t t = 0; t < of_->tables.size(); ++t)
    for (int rank = 0; rank < ranks_; ++rank)
      if (rank != rank_ && work.by_source[t].of[rank].size() > 0)
        return Status::Failed(
            "table '" + of_->model.tables[t].name +
            "': a batch of hot inputs looks up a row without a copy on this rank");
  return {};
}

void ShardedStore::fill_pool_tasks(const SparseBatch& sparse, Work& work) const {
  work.pool_tasks.clear();
  for (size_t f = 0; f < of_->model.features.size(); ++f) {
    const auto [bags, pooling] = fetched_bags(f, sparse, work);
    work.pool_tasks.push_back({bags, rows(of_->model.features[f].table), pooling, nullptr, 0});
  }
}

// Of all tables, and where each row is.
void ShardedStore::find_distinct(const Batch& batch, Work& work) {
  const ModelSpec& model = of_->model;
  const size_t tables = of_->tables.size();
  std::vector<kernels::FeatureBags> bags;
  bags.reserve(model.features.size());
  std::vector<kernels::TableLookups> lookups(tables);
  for (size_t t = 0; t < tables; ++t) {
    const size_t first = bags.size();
    for (size_t f : of_->features_of[t]) bags.push_back(fetched_bags(f, *batch.sparse, work));
    lookups[t] = {model.tables[t].rows, {bags.data() + first, bags.size() - first}};
  }
  work.distinct.resize(tables);
  finder_.find(lookups, {batch.first_slice, work.begins}, work.distinct, of_->pool);
  for (const DistinctRows& distinct : work.distinct) of_->distinct_rows += distinct.count();
  if (pooled_fetch_ != nullptr)
    for (size_t t = 0; t < tables; ++t)
      pooled_fetch_->set_means(*batch.sparse, of_->features_of[t], work.distinct[t]);
  work.row_places.resize(tables);
  work.by_source.resize(tables);
  work.own_too.assign(tables, 0);
  work.places.resize(model.features.size());
  work.is_direct.assign(model.features.size(), 0);
  of_->pool.run(static_cast<int64_t>(tables),
                [&](int64_t t) { find_sources(static_cast<size_t>(t), work); });
}

// Where lookups find this rank's rows of a table, or those of all ranks.
const kernels::RowStorage& ShardedStore::rows(size_t table) const {
  return shares(table) ? host_->rows(table) : of_->tables[table].rows();
}

// Where each lookup will find its row among those of all ranks.
void ShardedStore::find_shared(size_t table, Work& work) const {
  const DistinctRows& distinct = work.distinct[table];
  work.by_source[table].of.assign(ranks_, {});  // nothing is fetched
  const bool in_order = host_->in_order(table);
  std::vector<int64_t> indices(in_order ? 0 : distinct.count());
  if (!in_order) host_->find(table, {distinct.rows, work.row_places[table]}, indices.data());
  const auto& features = of_->features_of[table];
  for (size_t i = 0; i < features.size(); ++i) {
    const int64_t first = distinct.feature_begins[i];
    work.is_direct[features[i]] = 1;
    auto& places = work.places[features[i]];
    places.resize(in_order ? 0 : distinct.feature_begins[i + 1] - first);
    for (size_t j = 0; j < places.size(); ++j) places[j] = indices[distinct.positions[first + j]];
  }
}

// Where each lookup's row comes from, and where it will then be found.
void ShardedStore::find_sources(size_t table, Work& work) const {
  const DistinctRows& distinct = work.distinct[table];
  const table::EmbeddingTable& share = of_->tables[table];
  find_places(distinct.rows, share, work.row_places[table]);
  if (shares(table)) return find_shared(table, work);
  NamedRows fetched{distinct.rows, work.row_places[table]};
  if (!dedup_fetch_) fetched.indices = distinct.positions;
  RowsByRank& by_source = work.by_source[table];
  by_source.to_sources(fetched, share);
  const bool whole = !share.column_split().is_split();
  const table::RowRange own = by_source.of[rank_];
  const auto& features = of_->features_of[table];
  for (size_t i = 0; i < features.size(); ++i) {
    auto& places = work.places[features[i]];
    places.clear();
    bool is_direct = whole;
    for (int64_t j = distinct.feature_begins[i]; j < distinct.feature_begins[i + 1]; ++j) {
      const int64_t place = by_source.place[dedup_fetch_ ? distinct.positions[j] : j];
      is_direct = is_direct && own.begin <= place && place < own.end;
      places.push_back(place);
    }
    work.is_direct[features[i]] = is_direct ? 1 : 0;
    if (is_direct) {
      for (int64_t& place : places) place = by_source.slots[place];
    } else {
      work.own_too[table] = 1;
    }
  }
}

Status ShardedStore::lookup(Prepared& prepared, Output output, Stream&) {
  Work& work = Batches::work_of(prepared);
  const SparseBatch& sparse = *Batches::batch_of(prepared).sparse;
  of_->count_lookups(sparse);
  const int64_t note = updates_.note(work.copied_words);
  if (host_ != nullptr) RECMILL_RETURN_IF_ERROR(host_->begin(note, work.notes));
  RECMILL_ASSIGN_OR_RETURN(const auto fetched, fetch(work, note));
  pool_rows(work, fetched, output);
  if (host_ != nullptr) RECMILL_RETURN_IF_ERROR(host_->end());
  if (pooled_fetch_ == nullptr) return {};
  return pooled_fetch_->fetch(sparse, work.pooled, output, work.asked);
}

// The rows of each table that others have; of none where ranks share all rows.
Result<std::vector<kernels::RowStorage>> ShardedStore::fetch(Work& work, int64_t note) {
  std::vector<WantedRows> wanted;
  for (size_t t = 0; t < of_->tables.size(); ++t)
    wanted.push_back({&work.by_source[t], work.own_too[t] != 0});
  std::vector<kernels::RowStorage> fetched;
  for (RowFetch& fetch : fetches_) {
    const auto tables = std::span(wanted).subspan(fetched.size(), fetch.tables());
    if (work.asks_nobody) {
      const auto own = fetch.fetch_own(tables);
      fetched.insert(fetched.end(), own.begin(), own.end());
      work.note = note;
      continue;
    }
    const bool begins = std::exchange(came_, work.unasked) != work.unasked;
    RECMILL_ASSIGN_OR_RETURN(const auto rows,
                             work.unasked == nullptr
                                 ? fetch.fetch(tables, note)
                                 : fetch.fetch(tables, note, *work.unasked, begins));
    fetched.insert(fetched.end(), rows.begin(), rows.end());
    work.notes.assign(fetch.notes().begin(), fetch.notes().end());
  }
  return fetched;
}

// From `fetched` [tables], or from where rows are now, which may be another place than when the
// batch was prepared.
void ShardedStore::pool_rows(const Work& work, std::span<const kernels::RowStorage> fetched,
                             Output output) const {
  std::vector<kernels::PoolTask> tasks = work.pool_tasks;
  for (size_t f = 0; f < tasks.size(); ++f) {
    const FeatureSpec& feature = of_->model.features[f];
    RECMILL_CHECK(tasks[f].bags.offsets[0] == 0, feature.name);
    if (!work.places[f].empty()) tasks[f].bags.rows = work.places[f].data();
    tasks[f].rows = work.is_direct[f] == 0 ? fetched[feature.table] : rows(feature.table);
    tasks[f].out = output[f].data;
    tasks[f].stride = output[f].stride;
  }
  of_->fused_pool.run(tasks, work.task_map, of_->pool);
}

// Of batches that were looked up without a message.
Status ShardedStore::tell_notes(std::span<const Update> updates) {
  for (const Update& update : updates) {
    Work& work = Batches::work_of(*update.prepared);
    if (!work.asks_nobody) continue;
    RECMILL_ASSIGN_OR_RETURN(work.notes, gather_values(work.note, communicator_));
  }
  return {};
}

Status ShardedStore::update(std::span<const Update> updates, const Step& step, Stream&) {
  if (updates.empty()) return {};
  RECMILL_RETURN_IF_ERROR(tell_notes(updates));
  const int slices = Batches::batch_of(updates[0]).cut.slices;
  std::vector<std::span<const DistinctRows>> batches;
  std::vector<std::span<const int64_t>> notes;
  for (const Update& update : updates) {
    batches.emplace_back(Batches::work_of(update).distinct);
    notes.emplace_back(Batches::work_of(update).notes);
  }
  std::vector<DistinctRows> merged;
  const auto distinct = merge_tables(batches, of_->features_of, merged);
  const auto gradients = of_->gradients_of(updates);
  const bool is_one = updates.size() == 1;
  const Work& first = Batches::work_of(updates[0]);
  std::vector<std::vector<table::RowPlace>> merged_places(merged.size());
  std::vector<TableGradients> sources;
  for (size_t t = 0; t < of_->tables.size(); ++t) {
    sources.push_back({distinct[t], first.row_places[t], gradients[t]});
    if (!is_one) {
      find_places(distinct[t]->rows, of_->tables[t], merged_places[t]);
      sources.back().places = merged_places[t];
    }
    if (!of_->row_update.empty() && of_->row_update[t].needs_distinct_rows())
      sources.back().ahead = of_->row_update[t].values[1];
  }
  std::vector<TableSums> pooled;
  if (pooled_gradients_ != nullptr) {
    RECMILL_ASSIGN_OR_RETURN(pooled, pooled_gradients_->exchange(pooled_of(updates), slices));
  }
  const auto planned = is_one ? std::span(first.sent) : std::span<const SentSums>();
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows,
                           updates_.update(sources, planned, notes, slices,
                                           {step.iteration, step.learning_rate_scale}, pooled));
  of_->updated_rows += rows;
  return {};
}

std::vector<PooledUpdate> ShardedStore::pooled_of(std::span<const Update> updates) {
  std::vector<PooledUpdate> pooled;
  for (const Update& update : updates) {
    const Work& work = Batches::work_of(update);
    pooled.push_back({Batches::batch_of(update).sparse, &work.pooled, work.asked, update.gradient});
  }
  return pooled;
}

Status ShardedStore::write_rows(const RowBlock& block) {
  return write_table(of_->tables, block);
}

}  // namespace recmill::store
