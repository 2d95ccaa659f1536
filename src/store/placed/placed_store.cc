// SPDX-License-Identifier: Apache-2.0
#include "store/placed/placed_store.h"

#include <utility>

#include "base/clock.h"
#include "store/sharded/dense_reduce.h"
#include "store/table_store.h"
#include "store/tables/table_rows.h"

namespace recmill::store {

// All rows by one plan.
struct PlacedStore::Placed {
  std::shared_ptr<const table::PlacedTables> plan;
  RankTables* tables = nullptr;  // of `store`
  HostRows* host = nullptr;      // likewise, or null
  std::unique_ptr<EmbeddingStore> store;

  HeldRows held() const { return {tables->tables, host}; }
};

class PlacedStore::PlacedPrepared final : public Prepared {
 public:
  PlacedPrepared(std::shared_ptr<Placed> by, std::unique_ptr<Prepared> batch)
      : by_(std::move(by)), batch_(std::move(batch)) {}
  const std::shared_ptr<Placed>& by() const { return by_; }
  Prepared& batch() const { return *batch_; }

 private:
  const std::shared_ptr<Placed> by_;
  const std::unique_ptr<Prepared> batch_;
};

class PlacedStore::PlacedSnapshot final : public RowSnapshot {
 public:
  PlacedSnapshot(std::shared_ptr<Placed> of, std::unique_ptr<RowSnapshot> rows)
      : of_(std::move(of)), rows_(std::move(rows)) {}
  Status read(const std::function<Status(const RowBlock&)>& sink) override {
    return rows_->read(sink);
  }

 private:
  const std::shared_ptr<Placed> of_;
  const std::unique_ptr<RowSnapshot> rows_;
};

Result<std::unique_ptr<PlacedStore>> PlacedStore::create(
    ModelSpec model, uint64_t seed, Communicator& communicator, ThreadPool& pool,
    std::shared_ptr<const table::PlacedTables> placed, ShardedOptions options,
    StoreKernels kernels) {
  RECMILL_CHECK(placed->devices() == communicator.ranks(), std::to_string(placed->devices()));
  const auto shares = placed->shares(communicator.rank());
  std::unique_ptr<PlacedStore> store(
      new PlacedStore(std::move(model), seed, communicator, pool, options, std::move(kernels)));
  auto host = store->host_rows(shares);
  RECMILL_ASSIGN_OR_RETURN(auto tables,
                           create_tables(store->model_, seed, shares, pool, host.get()));
  store->now_ = store->make(std::move(placed), std::move(tables), std::move(host));
  return store;
}

PlacedStore::PlacedStore(ModelSpec model, uint64_t seed, Communicator& communicator,
                         ThreadPool& pool, ShardedOptions options, StoreKernels kernels)
    : model_(std::move(model)),
      seed_(seed),
      communicator_(communicator),
      pool_(pool),
      options_(options),
      kernels_(std::move(kernels)) {}

PlacedStore::~PlacedStore() = default;

std::unique_ptr<HostRows> PlacedStore::host_rows(std::span<const table::TableShare> shares) const {
  if (!options_.share_rows || !HostRows::possible(communicator_)) return nullptr;
  return std::make_unique<HostRows>(model_, shares, communicator_);
}

std::shared_ptr<PlacedStore::Placed> PlacedStore::make(
    std::shared_ptr<const table::PlacedTables> placed, std::vector<table::EmbeddingTable> tables,
    std::unique_ptr<HostRows> host) const {
  auto of_rank = std::make_unique<RankTables>(model_, std::move(tables), pool_, kernels_);
  RankTables* const own = of_rank.get();
  HostRows* const shared = host.get();
  auto store = make_table_store(std::move(of_rank), std::move(host), communicator_, options_,
                                placed->send_pooled());
  return std::make_shared<Placed>(Placed{std::move(placed), own, shared, std::move(store)});
}

std::shared_ptr<PlacedStore::Placed> PlacedStore::now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

bool PlacedStore::is_moving() const {
  std::lock_guard lock(mutex_);
  return coming_ != nullptr;
}

Status PlacedStore::place_from(int64_t iteration,
                               std::shared_ptr<const table::PlacedTables> placed) {
  RECMILL_CHECK(placed->devices() == communicator_.ranks(), std::to_string(placed->devices()));
  std::vector<table::EmbeddingTable> tables;
  const auto shares = placed->shares(communicator_.rank());
  for (size_t t = 0; t < shares.size(); ++t)
    tables.push_back(table::EmbeddingTable::without_rows(model_.tables[t], seed_, shares[t]));
  auto coming = make(std::move(placed), std::move(tables), host_rows(shares));
  std::lock_guard lock(mutex_);
  RECMILL_CHECK(coming_ == nullptr && iteration > prepared_, std::to_string(prepared_));
  coming_ = std::move(coming);
  coming_from_ = iteration;
  return {};
}

// Rows are where `wanted` has them: moved, where it is the plan to come.
Status PlacedStore::reach(const std::shared_ptr<Placed>& wanted) {
  const auto was = now();
  if (wanted == was) return {};
  {
    std::lock_guard lock(mutex_);
    RECMILL_CHECK(wanted == coming_, "a batch of a plan that is no more");
  }
  const Stopwatch watch;
  std::lock_guard preparing(preparing_);
  RECMILL_ASSIGN_OR_RETURN(const MigratedRows rows,
                           move_rows(was->held(), was->tables->snapshots.is_being_read(),
                                     wanted->held(), communicator_, pool_));
  moved_ = {rows, watch.seconds()};
  before_ = stats();
  std::lock_guard lock(mutex_);
  now_ = std::exchange(coming_, nullptr);
  return {};
}

Result<std::unique_ptr<Prepared>> PlacedStore::prepare(const Batch& batch) {
  std::shared_ptr<Placed> by;
  {
    std::lock_guard lock(mutex_);
    prepared_ = std::max(prepared_, batch.iteration);
    by = coming_ != nullptr && batch.iteration >= coming_from_ ? coming_ : now_;
  }
  const std::shared_lock preparing(preparing_);
  RECMILL_ASSIGN_OR_RETURN(auto prepared, by->store->prepare(batch));
  return std::unique_ptr<Prepared>(
      std::make_unique<PlacedPrepared>(std::move(by), std::move(prepared)));
}

Status PlacedStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  const auto& of = static_cast<const PlacedPrepared&>(prepared);
  RECMILL_RETURN_IF_ERROR(reach(of.by()));
  return of.by()->store->lookup(of.batch(), output, stream);
}

Status PlacedStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  std::vector<Update> own;
  const auto by = now();
  for (const Update& update : updates) {
    const auto& of = static_cast<const PlacedPrepared&>(*update.prepared);
    RECMILL_CHECK(of.by() == by, "an update before its lookup");
    own.push_back({&of.batch(), update.gradient});
  }
  return by->store->update(own, step, stream);
}

std::unique_ptr<RowSnapshot> PlacedStore::snapshot(int64_t kept_bytes) {
  auto of = now();
  auto rows = of->store->snapshot(kept_bytes);
  return std::make_unique<PlacedSnapshot>(std::move(of), std::move(rows));
}

table::Extent PlacedStore::extent(int table) const {
  return now()->store->extent(table);
}

Status PlacedStore::write_rows(const RowBlock& block) {
  return now()->store->write_rows(block);
}

StoreStats PlacedStore::stats() const {
  const StoreStats of_now = now()->store->stats();
  return {before_.lookups + of_now.lookups, before_.distinct_rows + of_now.distinct_rows,
          before_.updated_rows + of_now.updated_rows};
}

MemoryLedger placed_need(const ModelSpec& model, const table::PlacedTables& placed,
                         ShardedOptions options) {
  MemoryLedger ledger;
  for (int device = 0; device < placed.devices(); ++device) {
    const auto shares = placed.shares(device);
    tables_need(model, shares, device, ledger);
    const int64_t dense = DenseReduce::bytes(model, shares);
    const bool may_be = options.reduce == CopyReduce::automatic;
    if (dense > 0 && (may_be || options.reduce == CopyReduce::dense))
      ledger.items.push_back({"sums of rows with copies", device, dense, /*certain=*/!may_be});
  }
  return ledger;
}

}  // namespace recmill::store
