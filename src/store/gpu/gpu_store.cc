// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/gpu_store.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "batch/feature_layout.h"
#include "batch/gpu_sparse_batch.h"
#include "store/batch_check.h"
#include "store/tables/table_rows.h"
#include "table/table_shares.h"

namespace recmill::store {
namespace {

using kernels::codegen::GpuSource;
namespace gpu = kernels::gpu;

/// Says on reading why it could not be taken.
class NoSnapshot final : public RowSnapshot {
 public:
  explicit NoSnapshot(Status why) : why_(std::move(why)) {}
  Status read(const std::function<Status(const RowBlock&)>&) override { return why_; }

 private:
  const Status why_;
};

/// So that what comes next is at a multiple of 16 bytes.
int64_t aligned(int64_t floats) {
  return (floats + 3) / 4 * 4;
}

/// The kernel that has the function, and its place there.
template <class Source, class Function>
std::pair<size_t, int64_t> place_of(const std::vector<Source>& sources, const Function& function) {
  for (size_t k = 0; k < sources.size(); ++k) {
    const auto found = std::ranges::find(sources[k].functions, function);
    if (found != sources[k].functions.end()) return {k, found - sources[k].functions.begin()};
  }
  RECMILL_CHECK(false, "a function that was not generated");
}

}  // namespace

// What prepare() fills in; its memory goes from batch to batch.
struct GpuStore::Work {
  int64_t number = 0;  // no other batch has it
  const SparseBatch* sparse = nullptr;
  std::vector<std::shared_ptr<GpuSparseBatch>> made;  // whose bags are read where they were made
  kernels::GpuBags bags;
  bool is_looked_up = false;
  std::vector<int64_t> begins;  // [slices + 1], sample of the batch
  kernels::GpuLookups lookups;  // of training
  table::GpuUpdates updates;    // beside
  FarRows::OfBatch far;
  GpuEvent sent;   // all of it, to the GPU
  GpuEvent found;  // its distinct rows
  GpuEvent used;   // to the end, as far as it was enqueued
};

class GpuStore::GpuPrepared final : public Prepared {
 public:
  GpuPrepared(GpuStore& store, const Batch& of, std::unique_ptr<Work> filled)
      : batch(of), work(std::move(filled)), store_(store) {}
  ~GpuPrepared() override {
    work->made.clear();
    const std::lock_guard lock(store_.prepare_mutex_);
    store_.resting_.push_back(std::move(work));
  }

  const Batch batch;
  std::unique_ptr<Work> work;

 private:
  GpuStore& store_;
};

GpuStore::GpuStore(ModelSpec model, GpuSlotTables tables, std::span<const RowsAt> places,
                   std::shared_ptr<Gpu> gpu, ThreadPool& pool, GpuStream* stream)
    : model_(std::move(model)),
      features_of_(model_.tables.size()),
      tables_(std::move(tables.tables)),
      snapshots_(tables_),
      pool_(pool),
      places_(places.begin(), places.end()),
      gpu_(std::move(gpu)),
      stream_(stream == nullptr ? own_stream_ : *stream),
      rows_(std::move(tables.rows)),
      row_of_slot_(std::move(tables.row_of_slot)),
      names_(std::move(tables.names)),
      written_(tables_.size()) {
  for (size_t f = 0; f < model_.features.size(); ++f)
    features_of_[model_.features[f].table].push_back(f);
}

GpuStore::~GpuStore() = default;

Result<std::unique_ptr<GpuStore>> GpuStore::create(ModelSpec model, uint64_t seed,
                                                   std::shared_ptr<Gpu> gpu,
                                                   const GpuStoreKernels& kernels, ThreadPool& pool,
                                                   std::span<const RowsAt> places) {
  std::vector<RowsAt> at(places.begin(), places.end());
  at.resize(model.tables.size());
  std::vector<table::GpuRows> rows;
  const auto room_of = [&](const table::EmbeddingTable& table) -> Result<table::TableRoom> {
    const auto& [where, near, by_hot_set] = at[rows.size()];
    RECMILL_ASSIGN_OR_RETURN(auto of, table::GpuRows::allocate(table, *gpu, where, near));
    rows.push_back(std::move(of));
    return where == GpuMemory::host ? rows.back().room_of_zeros() : table::TableRoom();
  };
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, create_tables(model, seed, table::shares_of(model.tables, 0, 1), pool, room_of));
  std::unique_ptr<GpuStore> store(new GpuStore(std::move(model),
                                               {std::move(tables), std::move(rows), {}, {}}, at,
                                               std::move(gpu), pool, nullptr));
  RECMILL_ASSIGN_OR_RETURN(store->own_stream_, store->gpu_->open_stream());
  RECMILL_RETURN_IF_ERROR(store->open_streams());
  RECMILL_ASSIGN_OR_RETURN(
      store->staging_,
      store->gpu_->allocate_pinned(table::GpuRows::kStagingBytes, "rows to be copied"));
  std::ranges::fill(store->written_, 1);
  RECMILL_RETURN_IF_ERROR(store->upload_written());
  RECMILL_RETURN_IF_ERROR(store->load_all(kernels));
  return store;
}

Result<std::unique_ptr<GpuStore>> GpuStore::over_slots(ModelSpec model, GpuSlotTables slots,
                                                       std::shared_ptr<Gpu> gpu,
                                                       const GpuStoreKernels& kernels,
                                                       ThreadPool& pool, GpuStream& stream) {
  const std::vector<RowsAt> at(model.tables.size());
  std::unique_ptr<GpuStore> store(
      new GpuStore(std::move(model), std::move(slots), at, std::move(gpu), pool, &stream));
  RECMILL_RETURN_IF_ERROR(store->open_streams());
  RECMILL_RETURN_IF_ERROR(store->load_all(kernels));
  return store;
}

Status GpuStore::load_all(const GpuStoreKernels& kernels) {
  const GpuStoreSources sources = gpu_store_sources(model_, kernels, places_);
  most_slices_ = kernels.slices;
  RECMILL_ASSIGN_OR_RETURN(far_, FarRows::make(model_, places_, *gpu_, kernels.compile));
  RECMILL_RETURN_IF_ERROR(load_pool(sources, kernels));
  RECMILL_RETURN_IF_ERROR(load_finder(sources, kernels.compile));
  return load_updater(sources, kernels.compile);
}

Status GpuStore::open_streams() {
  RECMILL_ASSIGN_OR_RETURN(copies_, gpu_->open_stream());
  // Small kernels, that go beside large ones instead of behind them.
  RECMILL_ASSIGN_OR_RETURN(finds_, gpu_->open_stream(StreamPriority::high));
  RECMILL_ASSIGN_OR_RETURN(gradients_sent_, gpu_->open_event());
  RECMILL_ASSIGN_OR_RETURN(counted_there_, gpu_->open_event());
  RECMILL_ASSIGN_OR_RETURN(merged_, take_work());
  return {};
}

Result<std::vector<GpuKernel>> GpuStore::load(std::span<const GpuSource> sources,
                                              const kernels::codegen::CompileForGpu& compile) {
  RECMILL_ASSIGN_OR_RETURN(auto codes, compile(sources));
  std::vector<GpuKernel> kernels;
  for (kernels::codegen::GpuCode& code : codes) {
    RECMILL_ASSIGN_OR_RETURN(auto kernel, gpu_->load(code.code));
    kernels.push_back(std::move(kernel));
    codes_.push_back(std::move(code));
  }
  return kernels;
}

Status GpuStore::load_pool(const GpuStoreSources& sources, const GpuStoreKernels& kernels) {
  std::vector<kernels::codegen::GpuPoolRequest> features;
  for (size_t f = 0; f < model_.features.size(); ++f) {
    const table::GpuRows& rows = rows_[model_.features[f].table];
    features.push_back({sources.lookups[f], rows.records(), f, model_.features[f].name});
    if (rows.near() == nullptr) continue;
    features.back().far = rows.far_records();
    features.back().near = rows.near();
  }
  RECMILL_ASSIGN_OR_RETURN(
      fused_pool_,
      compile_gpu_pool(features, sources.fused, kernels.blocks > 0, kernels.compile, *gpu_));
  return {};
}

Status GpuStore::load_finder(const GpuStoreSources& sources,
                             const kernels::codegen::CompileForGpu& compile) {
  RECMILL_ASSIGN_OR_RETURN(auto kernels, load(sources.finder, compile));
  finder_ =
      std::make_unique<kernels::GpuDistinctRowsFinder>(*gpu_, std::move(kernels), sources.keys);
  RECMILL_ASSIGN_OR_RETURN(counted_, gpu_->allocate_pinned(tables_.size() * sizeof(int64_t),
                                                           "numbers of distinct rows"));
  return {};
}

Status GpuStore::load_updater(const GpuStoreSources& sources,
                              const kernels::codegen::CompileForGpu& compile) {
  const std::vector<GpuSource> texts(sources.updater.begin(), sources.updater.end());
  RECMILL_ASSIGN_OR_RETURN(auto loaded, load(texts, compile));
  std::vector<table::GpuUpdatedTable> tables;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto [kernel, schedule] = place_of(sources.updater, sources.updates[t]);
    tables.push_back({&tables_[t], rows_[t].records(), rows_[t].row_state(), kernel, schedule});
    if (!names_.empty()) tables.back().names = names_[t];
    if (!row_of_slot_.empty()) tables.back().row_of_slot = row_of_slot_[t];
    if (rows_[t].near() == nullptr) continue;
    tables.back().row_of_slot = rows_[t].row_of_near_slot();
    tables.back().far_records = rows_[t].far_records();
    tables.back().far_row_state = rows_[t].far_row_state();
    tables.back().near = rows_[t].near();
  }
  updater_ = std::make_unique<table::GpuUpdater>(*gpu_, std::move(loaded), std::move(tables));
  return {};
}

// ---- ahead of training

// Of one iteration's batches: the features of the first one, of the second ... are as many features
// of a table, so that a row's lookups go on from batch to batch within a slice.
std::vector<kernels::GpuTableLookups> GpuStore::table_lookups(
    std::span<const Work* const> batches) const {
  std::vector<kernels::GpuTableLookups> lookups;
  for (size_t t = 0; t < tables_.size(); ++t) {
    kernels::GpuTableLookups& table = lookups.emplace_back();
    table.rows = rows_[t].near() == nullptr ? model_.tables[t].rows : rows_[t].near()->slots();
    if (model_.tables[t].frozen) continue;
    for (const Work* batch : batches) {
      for (const size_t f : features_of_[t]) {
        const gpu::PoolFeature& there = batch->bags.features()[f];
        table.features.push_back(
            {{batch->sparse->features[f].view(batch->sparse->samples), model_.features[f].pooling},
             {0, batch->begins},
             there.offsets,
             there.lookups,
             there.weights});
      }
    }
  }
  return lookups;
}

// Memory that the GPU has done with.
Result<std::unique_ptr<GpuStore::Work>> GpuStore::take_work() {
  std::unique_ptr<Work> work;
  if (resting_.empty()) {
    work = std::make_unique<Work>();
    for (GpuEvent* const event : {&work->sent, &work->found, &work->used}) {
      RECMILL_ASSIGN_OR_RETURN(*event, gpu_->open_event());
    }
  } else {
    work = std::move(resting_.front());
    resting_.pop_front();
    for (GpuEvent* const event : {&work->sent, &work->found, &work->used})
      RECMILL_RETURN_IF_ERROR(event->synchronize());
  }
  work->number = next_number_++;
  work->is_looked_up = false;
  return work;
}

Status GpuStore::stage(std::span<const Work* const> batches, Work& work) const {
  const auto tables = table_lookups(batches);
  std::vector<int64_t> rows, features;  // at most; whose gradients there will be
  for (size_t t = 0; t < tables.size(); ++t) {
    rows.push_back(std::min(tables[t].lookups(), model_.tables[t].rows));
    features.push_back(std::ssize(batches) * std::ssize(features_of_[t]));
  }
  RECMILL_RETURN_IF_ERROR(finder_->stage(tables, work.lookups));
  const auto slices = static_cast<int>(batches[0]->begins.size()) - 1;
  RECMILL_CHECK(slices <= most_slices_);
  return updater_->stage(rows, features, slices, work.updates);
}

Status GpuStore::send_to_find(Work& work, GpuStream& stream) const {
  RECMILL_RETURN_IF_ERROR(kernels::GpuDistinctRowsFinder::send(work.lookups, stream));
  return updater_->send(work.updates, stream);
}

Result<std::unique_ptr<Prepared>> GpuStore::prepare(const Batch& batch) {
  RECMILL_CHECK(batch.first_slice == 0 && batch.end_slice == batch.cut.slices);
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch, pool_));
  const std::lock_guard lock(prepare_mutex_);
  RECMILL_ASSIGN_OR_RETURN(auto work, take_work());
  work->sparse = batch.sparse;
  std::vector<JaggedView> bags;
  for (const SparseFeature& feature : batch.sparse->features)
    bags.push_back(feature.view(batch.sparse->samples));
  RECMILL_ASSIGN_OR_RETURN(const auto made, bags_on_gpu(*batch.sparse, *work));
  RECMILL_RETURN_IF_ERROR(fused_pool_.pool->stage(bags, pool_, work->bags, nullptr, made));
  work->far.on_host = work->bags.far_lookups() + far_->lookups_of_far_tables(*batch.sparse);
  RECMILL_RETURN_IF_ERROR(fused_pool_.pool->send(work->bags, copies_));
  if (batch.purpose == Purpose::train) {
    work->begins.clear();
    for (int slice = 0; slice <= batch.cut.slices; ++slice)
      work->begins.push_back(batch.cut.begin(slice));
    const Work* const one = work.get();
    RECMILL_RETURN_IF_ERROR(stage({&one, 1}, *work));
    RECMILL_RETURN_IF_ERROR(send_to_find(*work, copies_));
  }
  RECMILL_RETURN_IF_ERROR(work->sent.record(copies_));
  return std::unique_ptr<Prepared>(std::make_unique<GpuPrepared>(*this, batch, std::move(work)));
}

// Those that were made there, as kernels read them; none: the host has all.
Result<std::vector<BagsOnGpu>> GpuStore::bags_on_gpu(const SparseBatch& sparse, Work& work) {
  work.far.is_counted_there = false;
  const std::shared_ptr<GpuSparseBatch>& made = sparse.on_gpu;
  if (made == nullptr) return std::vector<BagsOnGpu>();
  RECMILL_CHECK(&made->gpu() == gpu_.get(), "bags of another GPU");
  work.made.push_back(made);
  RECMILL_RETURN_IF_ERROR(made->wait(copies_));
  return far_->map(sparse, work.far, copies_);
}

// ---- on the GPU

// Rows that a feature's lookups give, and that its gradient has.
int64_t GpuStore::rows_out(size_t feature, const SparseBatch& sparse) const {
  return recmill::rows_out(model_.features[feature].pooling,
                           sparse.features[feature].view(sparse.samples));
}

Status GpuStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  auto& of = static_cast<GpuPrepared&>(prepared);
  Work& work = *of.work;
  RECMILL_CHECK(stream.gpu() == nullptr || stream.gpu() == &stream_);
  const std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(upload_written());
  for (const SparseFeature& feature : work.sparse->features)
    lookups_ += feature.view(work.sparse->samples).lookups();
  RECMILL_RETURN_IF_ERROR(stream_.wait_for(work.sent));
  if (of.batch.purpose == Purpose::train) RECMILL_RETURN_IF_ERROR(find_rows(work));
  work.is_looked_up = true;
  if (stream.gpu() == nullptr) return lookup_to_host(work, output);
  RECMILL_RETURN_IF_ERROR(pool_rows(work, output));
  return work.used.record(stream_);
}

Status GpuStore::pool_rows(Work& work, Output output) {
  std::vector<gpu::PoolOutput> outputs;
  for (const FeatureOutput& of : output) outputs.push_back({of.data, of.stride});
  RECMILL_RETURN_IF_ERROR(fused_pool_.pool->run(work.bags, outputs, stream_));
  for (const auto& made : work.made) RECMILL_RETURN_IF_ERROR(made->read_by(stream_));
  return {};
}

// Beside the lookups, once the update before needs no more of what was found for it.
Status GpuStore::find_rows(Work& work) {
  RECMILL_RETURN_IF_ERROR(finds_.wait_for(stream_));
  RECMILL_RETURN_IF_ERROR(finder_->run(work.lookups, finds_));
  RECMILL_RETURN_IF_ERROR(work.found.record(finds_));
  for (const auto& made : work.made) RECMILL_RETURN_IF_ERROR(made->read_by(finds_));
  found_of_ = work.number;
  return {};
}

Status GpuStore::lookup_to_host(Work& work, Output output) {
  const SparseBatch& sparse = *work.sparse;
  std::vector<int64_t> begins{0};  // of features' rows, floats
  for (size_t f = 0; f < model_.features.size(); ++f)
    begins.push_back(begins.back() + rows_out(f, sparse) * model_.dim_of(f));
  const size_t bytes = static_cast<size_t>(begins.back()) * sizeof(float);
  RECMILL_RETURN_IF_ERROR(reserve(outputs_, bytes, *gpu_, "rows looked up by a batch"));
  RECMILL_RETURN_IF_ERROR(reserve(outputs_of_host_, bytes, *gpu_, "rows looked up by a batch"));
  std::vector<FeatureOutput> outputs;
  for (size_t f = 0; f < model_.features.size(); ++f)
    outputs.push_back({outputs_.address<float>() + begins[f], model_.dim_of(f)});
  RECMILL_RETURN_IF_ERROR(pool_rows(work, outputs));
  RECMILL_RETURN_IF_ERROR(work.used.record(stream_));
  RECMILL_RETURN_IF_ERROR(stream_.to_host(outputs_of_host_, outputs_, bytes));
  RECMILL_RETURN_IF_ERROR(stream_.synchronize());
  pool_.run(std::ssize(model_.features), [&](int64_t f) {
    const float* from = outputs_of_host_.as<float>().data() + begins[f];
    const int64_t dim = model_.dim_of(f);
    for (int64_t i = 0; i < rows_out(f, sparse); ++i)
      std::copy_n(from + i * dim, dim, output[f].data + i * output[f].stride);
  });
  return {};
}

// Gives where they will be: [updates][features].
Result<std::vector<gpu::Gradients>> GpuStore::send_gradients(std::span<const Update> updates) {
  std::vector<int64_t> begins;  // beside, floats
  int64_t floats = 0;
  for (const Update& update : updates) {
    const SparseBatch& sparse = *static_cast<GpuPrepared&>(*update.prepared).batch.sparse;
    for (size_t f = 0; f < model_.features.size(); ++f) {
      begins.push_back(floats);
      floats += aligned(rows_out(f, sparse) * model_.dim_of(f));
    }
  }
  const size_t bytes = static_cast<size_t>(floats) * sizeof(float);
  RECMILL_RETURN_IF_ERROR(reserve(gradients_, bytes, *gpu_, "gradients of a batch"));
  RECMILL_RETURN_IF_ERROR(gradients_sent_.synchronize());
  RECMILL_RETURN_IF_ERROR(reserve(gradients_of_host_, bytes, *gpu_, "gradients of a batch"));
  const auto features = std::ssize(model_.features);
  pool_.run(std::ssize(begins), [&](int64_t i) {
    const Update& update = updates[i / features];
    const auto f = static_cast<size_t>(i % features);
    const SparseBatch& sparse = *static_cast<GpuPrepared&>(*update.prepared).batch.sparse;
    const FeatureGradient& from = update.gradient[f];
    float* to = gradients_of_host_.as<float>().data() + begins[i];
    const int64_t dim = model_.dim_of(f);
    for (int64_t row = 0; row < rows_out(f, sparse); ++row)
      std::copy_n(from.data + row * from.stride, dim, to + row * dim);
  });
  RECMILL_RETURN_IF_ERROR(stream_.to_device(gradients_, gradients_of_host_, bytes));
  RECMILL_RETURN_IF_ERROR(gradients_sent_.record(stream_));
  std::vector<gpu::Gradients> there;
  for (int64_t i = 0; i < std::ssize(begins); ++i)
    there.push_back({gradients_.address<float>() + begins[i],
                     model_.dim_of(static_cast<size_t>(i % features))});
  return there;
}

// [tables]: of the first update, of the second ...
std::vector<std::vector<gpu::Gradients>> GpuStore::by_table(
    std::span<const gpu::Gradients> of_updates) const {
  std::vector<std::vector<gpu::Gradients>> of_tables(tables_.size());
  for (size_t first = 0; first < of_updates.size(); first += model_.features.size())
    for (size_t t = 0; t < tables_.size(); ++t)
      for (const size_t f : features_of_[t]) of_tables[t].push_back(of_updates[first + f]);
  return of_tables;
}

// The batch of the update, or several of one iteration made into one: its rows are found once
// `found` of it has happened.
Result<GpuStore::Work*> GpuStore::found_work(std::span<const Update> updates) {
  std::vector<const Work*> batches;
  for (const Update& update : updates) {
    batches.push_back(static_cast<GpuPrepared&>(*update.prepared).work.get());
    RECMILL_CHECK(batches.back()->is_looked_up, "an update of a batch that was not looked up");
  }
  Work* work = static_cast<GpuPrepared&>(*updates[0].prepared).work.get();
  if (updates.size() > 1) {
    RECMILL_RETURN_IF_ERROR(merged_->used.synchronize());
    work = merged_.get();
    for (const Work* of : batches)
      work->made.insert(work->made.end(), of->made.begin(), of->made.end());
    RECMILL_RETURN_IF_ERROR(stage(batches, *work));
    RECMILL_RETURN_IF_ERROR(send_to_find(*work, stream_));
  }
  if (updates.size() > 1 || found_of_ != work->number) RECMILL_RETURN_IF_ERROR(find_rows(*work));
  return work;
}

Status GpuStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  if (updates.empty()) return {};
  RECMILL_CHECK(stream.gpu() == nullptr || stream.gpu() == &stream_);
  const std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(upload_written());
  RECMILL_ASSIGN_OR_RETURN(Work* const work, found_work(updates));
  RECMILL_RETURN_IF_ERROR(count_rows());
  const auto& found = finder_->found();
  std::vector<gpu::Gradients> gradients;
  if (stream.gpu() == nullptr) {
    RECMILL_ASSIGN_OR_RETURN(gradients, send_gradients(updates));
  } else {
    for (const Update& update : updates)
      for (const FeatureGradient& of : update.gradient) gradients.push_back({of.data, of.stride});
  }
  RECMILL_RETURN_IF_ERROR(updater_->send_arguments(work->updates, found.tables, by_table(gradients),
                                                   {step.iteration, step.learning_rate_scale},
                                                   stream_));
  RECMILL_RETURN_IF_ERROR(stream_.wait_for(work->found));
  RECMILL_RETURN_IF_ERROR(count_found(found, updates));
  RECMILL_ASSIGN_OR_RETURN(const auto change, before_change(updates));
  const Status updated = updater_->run(work->updates, stream_);  // some of it may be enqueued
  for (const Update& update : updates)
    RECMILL_RETURN_IF_ERROR(static_cast<GpuPrepared&>(*update.prepared).work->used.record(stream_));
  RECMILL_RETURN_IF_ERROR(merged_->used.record(stream_));
  merged_->made.clear();
  if (change.owns_lock()) RECMILL_RETURN_IF_ERROR(stream_.synchronize());
  return updated;
}

// What count_rows() takes once it has come to the host.
Status GpuStore::count_found(const kernels::GpuDistinctRowsFinder::Found& found,
                             std::span<const Update> updates) {
  std::vector<const FarRows::OfBatch*> batches;
  for (const Update& update : updates)
    batches.push_back(&static_cast<GpuPrepared&>(*update.prepared).work->far);
  RECMILL_RETURN_IF_ERROR(far_->count(found.tables, batches, stream_));
  RECMILL_RETURN_IF_ERROR(stream_.to_host(counted_, found.counted, counted_.size()));
  RECMILL_RETURN_IF_ERROR(counted_there_.record(stream_));
  to_count_ = true;
  return {};
}

// Where a snapshot is being read of tables that the GPU changes in place: holds its reader off,
// once the rows of this update are kept as they are after all updates before.
Result<table::TableSnapshots::Change> GpuStore::before_change(std::span<const Update> updates) {
  if (!snapshots_.wanted()) return table::TableSnapshots::Change();
  std::vector<std::vector<int64_t>> rows(tables_.size());
  for (const Update& update : updates) {
    const SparseBatch& sparse = *static_cast<GpuPrepared&>(*update.prepared).batch.sparse;
    for (size_t f = 0; f < model_.features.size(); ++f) {
      const auto t = static_cast<size_t>(model_.features[f].table);
      if (model_.tables[t].frozen || !is_in_place(t)) continue;
      RECMILL_ASSIGN_OR_RETURN(auto of_feature, rows_of(sparse, f));
      if (const kernels::NearRows* const near = rows_[t].near(); near != nullptr)
        std::erase_if(of_feature, [&](int64_t row) { return near->is_near(row); });
      rows[t].insert(rows[t].end(), of_feature.begin(), of_feature.end());
    }
  }
  if (std::ranges::all_of(rows, &std::vector<int64_t>::empty))
    return table::TableSnapshots::Change();
  RECMILL_RETURN_IF_ERROR(stream_.synchronize());
  const std::vector<std::span<const int64_t>> changed(rows.begin(), rows.end());
  return snapshots_.before(changed, pool_);
}

// The numbers of the update before, which the GPU knew first.
Status GpuStore::count_rows() const {
  if (!to_count_) return {};
  RECMILL_RETURN_IF_ERROR(counted_there_.synchronize());
  to_count_ = false;
  const auto counted = counted_.as<int64_t>();
  for (const int64_t rows : counted) distinct_rows_ += rows;
  last_far_ = far_->take(counted);
  far_counts_ += last_far_;
  return {};
}

// ---- the host's tables

Status GpuStore::download() {
  RECMILL_RETURN_IF_ERROR(upload_written());
  for (size_t t = 0; t < tables_.size(); ++t)
    RECMILL_RETURN_IF_ERROR(rows_[t].download(tables_[t], staging_, stream_));
  return stream_.synchronize();
}

Status GpuStore::upload_written() {
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (written_[t] == 0) continue;
    RECMILL_RETURN_IF_ERROR(rows_[t].upload(tables_[t], staging_, stream_));
    written_[t] = 0;
  }
  return {};
}

Status GpuStore::settle() {
  const std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(count_rows());
  return stream_.synchronize();
}

std::unique_ptr<RowSnapshot> GpuStore::snapshot(int64_t kept_bytes) {
  const std::lock_guard lock(mutex_);
  RECMILL_CHECK(!snapshots_.is_being_read(), "the snapshot before is there");
  Status status = download();
  if (!status.ok()) return std::make_unique<NoSnapshot>(std::move(status));
  return snapshots_.take(kept_bytes);
}

Status GpuStore::write_rows(const RowBlock& block) {
  const std::lock_guard lock(mutex_);
  const bool is_there = block.table >= 0 && block.table < static_cast<int>(tables_.size());
  RECMILL_RETURN_IF_ERROR(stream_.synchronize());
  // Rows of the table that are not replaced must not be older ones.
  if (is_there && written_[block.table] == 0)
    RECMILL_RETURN_IF_ERROR(rows_[block.table].download(tables_[block.table], staging_, stream_));
  RECMILL_RETURN_IF_ERROR(write_table(tables_, block));
  written_[block.table] = 1;
  return {};
}

StoreStats GpuStore::stats() const {
  const std::lock_guard lock(mutex_);
  static_cast<void>(count_rows().ok());  // why not, the next call says
  StoreStats stats{lookups_.load(), distinct_rows_, distinct_rows_};
  stats.far = far_counts_;
  stats.last_far = last_far_;
  return stats;
}

}  // namespace recmill::store
