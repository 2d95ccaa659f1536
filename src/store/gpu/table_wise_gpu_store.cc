// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/table_wise_gpu_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <string>
#include <utility>

#include "comm/slice_tree.h"
#include "device/gpu/staged_arrays.h"
#include "store/batch_check.h"
#include "store/exchange/bag_message.h"
#include "store/tables/table_rows.h"

namespace recmill::store {
namespace {

constexpr const char* kRowsOfBatch = "rows of a batch";

/// Gives tables the numbers that they have in the whole model.
class NumberedSnapshot final : public RowSnapshot {
 public:
  NumberedSnapshot(std::unique_ptr<RowSnapshot> inner, const std::vector<int>& tables)
      : inner_(std::move(inner)), tables_(tables) {}
  Status read(const std::function<Status(const RowBlock&)>& sink) override {
    return inner_->read([&](RowBlock block) {
      block.table = tables_[block.table];
      return sink(block);
    });
  }

 private:
  const std::unique_ptr<RowSnapshot> inner_;
  const std::vector<int>& tables_;
};

struct Samples {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};
Samples samples_of(const SliceCut& cut, int rank, int ranks) {
  const SliceRange slices = slices_of_rank(rank, ranks, cut.slices);
  return {cut.begin(slices.begin), cut.begin(slices.end)};
}

/// What belongs to those samples of a batch, of all of its features.
std::vector<PackedRows::Piece> part_of(const PackedRows& rows, Samples samples,
                                       const SparseBatch& batch) {
  std::vector<int64_t> lookups, counts;
  for (const SparseFeature& feature : batch.features) {
    lookups.push_back(feature.offsets[samples.begin]);
    counts.push_back(feature.offsets[samples.end] - lookups.back());
  }
  return rows.part(samples.begin, samples.size(), lookups, counts);
}

/// Where each feature's rows are stored.
template <class At>
std::vector<At> features_at(const PackedRows& rows, float* floats) {
  std::vector<At> at;
  for (size_t f = 0; f < rows.features(); ++f)
    at.push_back({floats + rows.begin(f), rows.stride(f)});
  return at;
}

/// Appends pieces of what begins at `floats`.
void append(std::span<const PackedRows::Piece> pieces, float* floats, DevicePieces& to) {
  for (const auto& [begin, count] : pieces)
    to.push_back({floats + begin, static_cast<size_t>(count) * sizeof(float)});
}

}  // namespace

class TableWiseGpuStore::TableWisePrepared final : public Prepared {
 public:
  TableWisePrepared(TableWiseGpuStore& store, const Batch& of) : batch(of), store_(store) {}
  ~TableWisePrepared() override { store_.forget(*this); }

  const Batch batch;
  int64_t number = -1;
  std::vector<std::vector<int64_t>> messages;  // [ranks]: bags of the features that each holds
  SparseBatch all;  // bags of the features that this rank holds, of all ranks' samples
  std::unique_ptr<Prepared> held;  // of `all`
  std::future<Status> merging;     // beside training; invalid: it is not

 private:
  TableWiseGpuStore& store_;
};

/// Where rows of some batches are, or their gradients.
struct TableWiseGpuStore::Places {
  struct Block {
    PackedRows rows;
    int64_t begin = 0;  // floats
  };
  std::span<TableWisePrepared* const> batches;
  Direction direction;
  std::vector<Block> of_all;               // [batches]: of this rank's features, of all samples
  std::vector<std::vector<Block>> of_own;  // [batches][ranks]: of its features, of own samples
  size_t all_bytes = 0, own_bytes = 0;
};

TableWiseGpuStore::TableWiseGpuStore(ModelSpec model, Communicator& communicator, ThreadPool& pool)
    : model_(std::move(model)),
      rank_(communicator.rank()),
      ranks_(communicator.ranks()),
      of_ranks_(ranks_),
      places_(model_.tables.size(), -1),
      communicator_(communicator),
      pool_(pool) {
  const auto of_ranks = held_tables(model_, ranks_);
  for (int rank = 0; rank < ranks_; ++rank) {
    Held& held = of_ranks_[rank];
    static_cast<HeldTables&>(held) = of_ranks[rank];
    held.rows = held.gradients = packed_shapes(held, model_);
    for (size_t k = 0; k < held.features.size(); ++k)
      if (is_frozen(held.features[k])) held.gradients[k].dim = 0;
  }
  const std::vector<int>& own = of_ranks_[rank_].tables;
  for (size_t i = 0; i < own.size(); ++i) places_[own[i]] = static_cast<int>(i);
}

TableWiseGpuStore::~TableWiseGpuStore() = default;

Result<std::unique_ptr<TableWiseGpuStore>> TableWiseGpuStore::create(
    ModelSpec model, uint64_t seed, std::shared_ptr<Gpu> gpu, const GpuStoreKernels& kernels,
    Communicator& communicator, const MakeGpuExchange& make_exchange, ThreadPool& pool,
    std::span<const RowsAt> places) {
  std::unique_ptr<TableWiseGpuStore> store(
      new TableWiseGpuStore(std::move(model), communicator, pool));
  GpuStoreKernels of_held = kernels;
  of_held.pool.clear();
  for (const size_t f : store->of_ranks_[store->rank_].features)
    if (!kernels.pool.empty()) of_held.pool.push_back(kernels.pool[f]);
  std::vector<RowsAt> held_places;
  for (const int t : store->of_ranks_[store->rank_].tables)
    if (!places.empty()) held_places.push_back(places[t]);
  RECMILL_ASSIGN_OR_RETURN(
      store->held_, GpuStore::create(model_of(store->of_ranks_[store->rank_], store->model_), seed,
                                     std::move(gpu), of_held, pool, held_places));
  RECMILL_ASSIGN_OR_RETURN(store->exchange_, make_exchange(store->gpu(), communicator));
  RECMILL_ASSIGN_OR_RETURN(auto copier, kernels::GpuRowCopier::make(store->gpu(), kernels.compile));
  store->copier_ = std::make_unique<kernels::GpuRowCopier>(std::move(copier));
  return store;
}

// ---- lookups

Result<std::unique_ptr<Prepared>> TableWiseGpuStore::prepare(const Batch& batch) {
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch, pool_));
  const SliceRange own = slices_of_rank(rank_, ranks_, batch.cut.slices);
  RECMILL_CHECK(own == SliceRange(batch.first_slice, batch.end_slice));
  auto prepared = std::make_unique<TableWisePrepared>(*this, batch);
  prepared->messages.resize(ranks_);
  pool_.run(ranks_, [&](int64_t rank) {
    for (const size_t f : of_ranks_[rank].features)
      append_bags(batch.sparse->features[f].view(batch.sparse->samples), prepared->messages[rank]);
  });
  const std::lock_guard lock(waiting_mutex_);
  prepared->number = batches_++;
  waiting_[prepared->number] = prepared.get();
  return std::unique_ptr<Prepared>(std::move(prepared));
}

void TableWiseGpuStore::forget(const TableWisePrepared& of) {
  const std::lock_guard lock(waiting_mutex_);
  waiting_.erase(of.number);
}

// [ranks]: the bags of this batch, unless they have been sent ahead, and those of the batch that is
// thought to be looked up next. One that is given up instead is replaced when another one comes.
std::vector<std::vector<int64_t>> TableWiseGpuStore::take_messages(const TableWisePrepared& of) {
  std::vector<std::vector<int64_t>> to_rank(ranks_);
  const auto add = [&](const TableWisePrepared& batch, int64_t is_next) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::vector<int64_t>& bags = batch.messages[rank];
      to_rank[rank].insert(to_rank[rank].end(),
                           {is_next, batch.batch.sparse->samples, std::ssize(bags)});
      to_rank[rank].insert(to_rank[rank].end(), bags.begin(), bags.end());
    }
  };
  if (ahead_ != of.number) add(of, 0);
  const std::lock_guard lock(waiting_mutex_);
  waiting_.erase(of.number);
  const auto next = waiting_.upper_bound(of.number);
  const bool is_known = ranks_ > 1 && next != waiting_.end();
  ahead_ = is_known ? next->first : -1;
  if (is_known) add(*next->second, 1);
  return to_rank;
}

// What take_messages() has made.
void TableWiseGpuStore::take_in(std::span<const std::byte> message, Part& now, Part& next) {
  while (!message.empty()) {
    std::array<int64_t, 3> head;  // whether of the next batch; samples; words
    RECMILL_CHECK(message.size() >= sizeof head);
    std::memcpy(head.data(), message.data(), sizeof head);
    const size_t bytes = sizeof head + head[2] * sizeof(int64_t);
    RECMILL_CHECK(message.size() >= bytes);
    const auto bags = message.first(bytes).subspan(sizeof head);
    Part& part = head[0] != 0 ? next : now;
    part.bags.assign(bags.begin(), bags.end());
    part.samples = head[1];
    message = message.subspan(bytes);
  }
}

// Every rank gets all lookups of the tables that it holds.
Status TableWiseGpuStore::exchange_bags(TableWisePrepared& of) {
  const auto messages = take_messages(of);
  std::vector<std::span<const std::byte>> to_rank;
  for (const auto& message : messages) to_rank.push_back(std::as_bytes(std::span(message)));
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator_.all_to_all(to_rank));
  const auto ahead = std::exchange(next_, std::make_shared<Parts>(ranks_));
  Parts now(ranks_);
  for (int rank = 0; rank < ranks_; ++rank) take_in(received.from(rank), now[rank], (*next_)[rank]);
  const bool as_sent_ahead =
      std::ranges::all_of(now, [](const Part& part) { return !part.is_there(); });
  const bool is_merged = of.merging.valid();
  Status status = is_merged ? of.merging.get() : Status();
  if (!is_merged || !as_sent_ahead) {
    for (int rank = 0; rank < ranks_ && ahead != nullptr; ++rank)
      if (!now[rank].is_there()) now[rank] = (*ahead)[rank];
    RECMILL_CHECK(fits(now, of.batch.cut), "ranks look up other batches");
    status = merge_bags(now, of);
  }
  RECMILL_RETURN_IF_ERROR(status);
  prepare_ahead();
  return {};
}

// Whether all have come, of a batch that is cut so.
bool TableWiseGpuStore::fits(const Parts& parts, const SliceCut& cut) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (parts[rank].samples != samples_of(cut, rank, ranks_).size()) return false;
  return true;
}

// On whatever thread.
Status TableWiseGpuStore::merge_bags(const Parts& parts, TableWisePrepared& of) {
  of.all.first = of.batch.sparse->first - of.batch.cut.begin(of.batch.first_slice);
  of.all.samples = of.batch.cut.samples;
  of.all.features.assign(of_ranks_[rank_].features.size(), {{0}, {}, {}});
  for (const Part& part : parts) {
    BagReader reader(part.bags);
    for (SparseFeature& feature : of.all.features) reader.take(part.samples, feature);
    RECMILL_CHECK(reader.is_at_end(), "bags of other features");
  }
  Batch batch = of.batch;
  batch.first_slice = 0;
  batch.end_slice = batch.cut.slices;
  batch.sparse = &of.all;
  RECMILL_ASSIGN_OR_RETURN(of.held, held_->prepare(batch));
  return {};
}

// The batch that was sent as the next one, beside training, where all ranks have sent theirs.
void TableWiseGpuStore::prepare_ahead() {
  const std::lock_guard lock(waiting_mutex_);
  const auto next = waiting_.find(ahead_);
  if (next == waiting_.end() || !fits(*next_, next->second->batch.cut)) return;
  next->second->merging = std::async(std::launch::async, [this, parts = next_, of = next->second] {
    return merge_bags(*parts, *of);
  });
}

Result<TableWiseGpuStore::Places> TableWiseGpuStore::place(
    std::span<TableWisePrepared* const> batches, Direction direction) {
  Places places{batches, direction, {}, {}};
  int64_t all = 0, own = 0;
  const auto add = [&](const Held& held, const SparseBatch& batch, const auto& bags_of,
                       int64_t& floats) {
    std::vector<int64_t> lookups;
    for (size_t k = 0; k < held.features.size(); ++k)
      lookups.push_back(bags_of(k).view(batch.samples).lookups());
    Places::Block block{{held.shapes(direction), batch.samples, std::move(lookups)}, floats};
    floats += block.rows.floats();
    return block;
  };
  for (const TableWisePrepared* of : batches) {
    const auto held_bags = [&](size_t k) -> const auto& {
      return of->all.features[k];
    };
    places.of_all.push_back(add(of_ranks_[rank_], of->all, held_bags, all));
    auto& of_own = places.of_own.emplace_back();
    for (const Held& held : of_ranks_) {
      const SparseBatch& sparse = *of->batch.sparse;
      const auto own_bags = [&](size_t k) -> const auto& {
        return sparse.features[held.features[k]];
      };
      of_own.push_back(add(held, sparse, own_bags, own));
    }
  }
  places.all_bytes = static_cast<size_t>(all) * sizeof(float);
  places.own_bytes = static_cast<size_t>(own) * sizeof(float);
  RECMILL_RETURN_IF_ERROR(reserve(of_all_samples_, places.all_bytes, gpu(), kRowsOfBatch));
  RECMILL_RETURN_IF_ERROR(reserve(of_own_samples_, places.own_bytes, gpu(), kRowsOfBatch));
  return places;
}

// Between the holders of tables, who have rows for all samples, and the ranks that have the
// samples.
Status TableWiseGpuStore::move(const Places& places) {
  std::vector<DevicePieces> at_holder(ranks_), at_samples(ranks_);
  for (size_t b = 0; b < places.batches.size(); ++b) {
    const TableWisePrepared& of = *places.batches[b];
    const auto& [all, all_begin] = places.of_all[b];
    for (int rank = 0; rank < ranks_; ++rank) {
      const Samples samples = samples_of(of.batch.cut, rank, ranks_);
      append(part_of(all, samples, of.all), of_all_samples_.address<float>() + all_begin,
             at_holder[rank]);
      const auto& [own, own_begin] = places.of_own[b][rank];
      append(own.all(), of_own_samples_.address<float>() + own_begin, at_samples[rank]);
    }
  }
  const bool to_samples = places.direction == Direction::to_samples;
  auto &from = to_samples ? at_holder : at_samples, &to = to_samples ? at_samples : at_holder;
  GpuStream& stream = held_->stream();
  for (size_t piece = 0; piece < to[rank_].size(); ++piece) {
    const auto [address, bytes] = to[rank_][piece];
    if (bytes > 0)
      RECMILL_RETURN_IF_ERROR(
          held_->gpu().driver().copy(address, from[rank_][piece].address, bytes, stream.handle()));
  }
  from[rank_].clear();
  to[rank_].clear();
  return exchange_->all_to_all(from, to, stream);
}

// f(batch, feature, where what is moved of it is among own samples').
template <class F>
void TableWiseGpuStore::for_each_feature(const Places& places, const F& f) const {
  for (size_t b = 0; b < places.batches.size(); ++b) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto& [rows, begin] = places.of_own[b][rank];
      for (size_t k = 0; k < of_ranks_[rank].features.size(); ++k) {
        const size_t feature = of_ranks_[rank].features[k];
        if (places.direction == Direction::to_holders && is_frozen(feature)) continue;
        f(b, feature, Rows{begin + rows.begin(k), rows.stride(k), rows.rows(k)});
      }
    }
  }
}

// copy(batch, feature, row, floats at the row's place among own samples' on the host).
template <class Copy>
void TableWiseGpuStore::copy_rows(const Places& places, const Copy& copy) {
  struct Task {
    size_t batch, feature;
    Rows rows;
  };
  std::vector<Task> tasks;
  for_each_feature(places, [&](size_t batch, size_t feature, const Rows& rows) {
    tasks.push_back({batch, feature, rows});
  });
  float* const floats = of_own_samples_on_host_.as<float>().data();
  pool_.run(std::ssize(tasks), [&](int64_t i) {
    const auto& [batch, feature, rows] = tasks[i];
    for (int64_t row = 0; row < rows.count; ++row)
      copy(batch, feature, row, floats + rows.begin + row * rows.stride);
  });
}

// Packed rows of own samples to the caller.
Status TableWiseGpuStore::hand_out(const Places& places, Output output, bool to_host) {
  GpuStream& queue = stream();
  if (to_host) {
    RECMILL_RETURN_IF_ERROR(
        reserve(of_own_samples_on_host_, places.own_bytes, gpu(), kRowsOfBatch));
    RECMILL_RETURN_IF_ERROR(
        queue.to_host(of_own_samples_on_host_, of_own_samples_, places.own_bytes));
    RECMILL_RETURN_IF_ERROR(exchange_->wait(queue));
    copy_rows(places, [&](size_t, size_t feature, int64_t row, const float* from) {
      const FeatureOutput& to = output[feature];
      std::copy_n(from, model_.dim_of(feature), to.data + row * to.stride);
    });
    return {};
  }
  std::vector<kernels::gpu::RowCopy> copies;
  for_each_feature(places, [&](size_t, size_t feature, const Rows& rows) {
    const FeatureOutput& to = output[feature];
    copies.push_back({of_own_samples_.address<float>() + rows.begin, to.data, rows.stride,
                      to.stride, rows.count, model_.dim_of(feature)});
  });
  return copier_->copy(copies, queue);
}

Status TableWiseGpuStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  const bool to_host = stream.gpu() == nullptr;
  RECMILL_CHECK(to_host || stream.gpu() == &held_->stream());
  auto* const of = static_cast<TableWisePrepared*>(&prepared);
  const std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(exchange_bags(*of));
  RECMILL_ASSIGN_OR_RETURN(const Places places, place({&of, 1}, Direction::to_samples));
  Stream on_gpu(pool_, &held_->stream());
  const auto pooled =
      features_at<FeatureOutput>(places.of_all[0].rows, of_all_samples_.address<float>());
  RECMILL_RETURN_IF_ERROR(held_->lookup(*of->held, pooled, on_gpu));
  RECMILL_RETURN_IF_ERROR(move(places));
  RECMILL_RETURN_IF_ERROR(hand_out(places, output, to_host));
  for (const SparseFeature& feature : of->batch.sparse->features)
    lookups_ += feature.view(of->batch.sparse->samples).lookups();
  return {};
}

// ---- updates

// The caller's gradients to packed rows of own samples.
Status TableWiseGpuStore::take_gradients(const Places& places, std::span<const Update> updates,
                                         bool of_host) {
  GpuStream& queue = stream();
  if (of_host) {
    RECMILL_RETURN_IF_ERROR(
        reserve(of_own_samples_on_host_, places.own_bytes, gpu(), kRowsOfBatch));
    copy_rows(places, [&](size_t batch, size_t feature, int64_t row, float* to) {
      const FeatureGradient& from = updates[batch].gradient[feature];
      std::copy_n(from.data + row * from.stride, model_.dim_of(feature), to);
    });
    return queue.to_device(of_own_samples_, of_own_samples_on_host_, places.own_bytes);
  }
  std::vector<kernels::gpu::RowCopy> copies;
  for_each_feature(places, [&](size_t batch, size_t feature, const Rows& rows) {
    const FeatureGradient& from = updates[batch].gradient[feature];
    copies.push_back({from.data, of_own_samples_.address<float>() + rows.begin, from.stride,
                      rows.stride, rows.count, model_.dim_of(feature)});
  });
  return copier_->copy(copies, queue);
}

Status TableWiseGpuStore::update(std::span<const Update> updates, const Step& step,
                                 Stream& stream) {
  if (updates.empty()) return {};
  const bool of_host = stream.gpu() == nullptr;
  RECMILL_CHECK(of_host || stream.gpu() == &held_->stream());
  std::vector<TableWisePrepared*> batches;
  for (const Update& update : updates)
    batches.push_back(static_cast<TableWisePrepared*>(update.prepared));
  const std::lock_guard lock(mutex_);
  RECMILL_ASSIGN_OR_RETURN(const Places places, place(batches, Direction::to_holders));
  RECMILL_RETURN_IF_ERROR(take_gradients(places, updates, of_host));
  GpuStream& queue = held_->stream();
  RECMILL_RETURN_IF_ERROR(move(places));
  // So that whoever waits for the stream from now on waits for no other rank.
  RECMILL_RETURN_IF_ERROR(exchange_->wait(queue));
  std::vector<std::vector<FeatureGradient>> gradients;
  std::vector<Update> of_held;
  for (const auto& [rows, begin] : places.of_all)
    gradients.push_back(
        features_at<FeatureGradient>(rows, of_all_samples_.address<float>() + begin));
  for (size_t b = 0; b < batches.size(); ++b)
    of_held.push_back({batches[b]->held.get(), gradients[b]});
  Stream on_gpu(pool_, &queue);
  return held_->update(of_held, step, on_gpu);
}

// ---- rows

std::unique_ptr<RowSnapshot> TableWiseGpuStore::snapshot(int64_t kept_bytes) {
  return std::make_unique<NumberedSnapshot>(held_->snapshot(kept_bytes), of_ranks_[rank_].tables);
}

table::Extent TableWiseGpuStore::extent(int table) const {
  if (places_[table] < 0) return {{}, {0, model_.tables[table].dim}};
  return held_->extent(places_[table]);
}

Status TableWiseGpuStore::write_rows(const RowBlock& block) {
  if (block.table < 0 || block.table >= std::ssize(places_))
    return Status::Failed("there is no table " + std::to_string(block.table));
  if (places_[block.table] < 0) return {};
  RowBlock of_held = block;
  of_held.table = places_[block.table];
  return held_->write_rows(of_held);
}

StoreStats TableWiseGpuStore::stats() const {
  StoreStats stats = held_->stats();
  stats.lookups = lookups_.load();
  return stats;
}

}  // namespace recmill::store
