// SPDX-License-Identifier: Apache-2.0
#include "store/cached/cached_store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/batch_check.h"
#include "store/tables/table_rows.h"
#include "table/home/image_snapshot.h"

namespace recmill::store {
namespace {

constexpr int64_t kRowsAtATime = int64_t{1} << 14;  // that go home, or are written, in one call

StoreKernels without_tables(StoreKernels kernels) {
  kernels.row_update.clear();
  return kernels;
}

}  // namespace

// What prepare() fills in.
struct CachedStore::Work {
  std::shared_ptr<const StepPlan> plan;  // null: outside the stream
  SparseBatch in_slots;
  std::unique_ptr<Prepared> inner;
  // Of a batch outside the stream:
  std::vector<DistinctRows> distinct;  // [tables]
};

CachedStore::CachedStore(ModelSpec model, uint64_t seed, std::shared_ptr<table::RowHome> home,
                         ThreadPool& pool, StoreKernels kernels)
    : model_(std::move(model)),
      tables_(model_),
      seed_(seed),
      records_(model_.tables.begin(), model_.tables.end()),
      pool_(pool),
      kernels_(without_tables(std::move(kernels))),
      home_(std::move(home)),
      slot_batches_(model_, tables_),
      outside_(model_, tables_, records_, seed_, pool_),
      mover_(tables_, records_, *home_) {}

CachedStore::~CachedStore() = default;

std::vector<int64_t> CachedStore::slot_bytes(const ModelSpec& model, const SlotTables& tables) {
  std::vector<int64_t> bytes;
  for (int k = 0; k < tables.count(); ++k) {
    TableSpec one = model.tables[tables.first_table(k)];
    one.rows = 1;
    const auto names = static_cast<int64_t>(sizeof(int64_t) + sizeof(int64_t) + 1);
    bytes.push_back(table::EmbeddingTable::bytes(one, table::RowShare(1, 0, 1)) + names);
  }
  return bytes;
}

Status CachedStore::open(const CacheSize& size) {
  RECMILL_CHECK(std::ssize(size.slots) == tables_.count());
  ModelSpec inner = Slots::inner_model(model_, tables_, size.slots);
  std::vector<table::TableShare> shares;
  for (const TableSpec& table : inner.tables)
    shares.emplace_back(table::RowShare(table.rows, 0, 1));
  auto rooms = Slots::inner_tables(inner, seed_, shares);
  RECMILL_RETURN_IF_ERROR(Slots::allocate(tables_, rooms));
  auto of = std::make_unique<RankTables>(std::move(inner), std::move(rooms), pool_, kernels_);
  slots_ = std::make_unique<Slots>(model_, tables_, seed_, *of);
  inner_ = std::make_unique<LocalStore>(std::move(of));
  mover_.open(*slots_);
  is_open_ = true;
  return {};
}

Status CachedStore::begin_step(const StepPlan& plan) {
  const auto& step = plan.lookahead;
  RECMILL_CHECK(plan.cache != nullptr);
  const int64_t expected = last_ == nullptr ? 0 : last_->step + 1;
  if (step->step != expected)
    return Status::Failed("a batch has the plan of step " + std::to_string(step->step) +
                          ", and step " + std::to_string(expected) + " is the next");
  if (inner_ == nullptr) RECMILL_RETURN_IF_ERROR(open(*plan.cache));
  last_ = step;
  slot_batches_.begin(step->step, step->uses, pool_);
  mover_.plan(step);
  return {};
}

Status CachedStore::prepare_in_slots(const Batch& batch, Work& work) {
  if (last_ == nullptr || batch.plan->lookahead != last_)
    RECMILL_RETURN_IF_ERROR(begin_step(*batch.plan));
  RECMILL_RETURN_IF_ERROR(slot_batches_.replace_rows(*batch.sparse, work.in_slots, pool_));
  Batch inner = batch;
  inner.sparse = &work.in_slots;
  RECMILL_ASSIGN_OR_RETURN(work.inner, inner_->prepare(inner));
  return {};
}

Result<std::unique_ptr<Prepared>> CachedStore::prepare(const Batch& batch) {
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch, pool_));
  RECMILL_CHECK(batch.first_slice == 0 && batch.end_slice == batch.cut.slices);
  auto work = batches_.take();
  work->plan = batch.plan;
  if (batch.plan != nullptr && batch.plan->lookahead != nullptr) {
    RECMILL_RETURN_IF_ERROR(prepare_in_slots(batch, *work));
  } else if (batch.purpose == Purpose::train) {
    return Status::Failed("a batch of iteration " + std::to_string(batch.iteration) +
                          " has no plan of what its cache does");
  } else {
    work->plan = nullptr;
    outside_.prepare(batch, work->distinct);
  }
  return batches_.prepared(batch, std::move(work));
}

Status CachedStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  Work& work = Batches::work_of(prepared);
  const Batch& batch = Batches::batch_of(prepared);
  if (work.plan == nullptr) {
    const auto fetch = [this](std::span<const RowInSlot>, RowRecords& records) {
      return mover_.call([&]() -> Status {
        RECMILL_RETURN_IF_ERROR(bring_home());
        return mover_.fetch(records);
      });
    };
    return outside_.look_up(batch, work.distinct, fetch, output, stream);
  }
  const int64_t step = work.plan->step;
  RECMILL_RETURN_IF_ERROR(mover_.wait_until_ready(step));
  RECMILL_RETURN_IF_ERROR(inner_->lookup(*work.inner, output, stream));
  if (batch.purpose != Purpose::train) mover_.done(step);
  return {};
}

Status CachedStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  if (updates.empty()) return {};
  std::vector<Update> inner;
  for (const Update& update : updates)
    inner.push_back({Batches::work_of(update).inner.get(), update.gradient});
  RECMILL_RETURN_IF_ERROR(inner_->update(inner, step, stream));
  const StepPlan& plan = *Batches::work_of(updates[0]).plan;
  slots_->note_updated(plan.lookahead->uses);
  mover_.done(plan.step);
  return {};
}

/// Puts what was updated in slots, where it stays. Within MoverThread::call().
Status CachedStore::bring_home() {
  if (!is_open_) return {};
  const auto changed = slots_->take_changed();
  for (int64_t begin = 0; begin < std::ssize(changed); begin += kRowsAtATime) {
    const auto some = std::span(changed).subspan(
        static_cast<size_t>(begin),
        static_cast<size_t>(std::min(kRowsAtATime, std::ssize(changed) - begin)));
    RowRecords records(tables_, records_, some);
    for (size_t i = 0; i < some.size(); ++i) slots_->copy_out(some[i], records.record(i));
    RECMILL_RETURN_IF_ERROR(mover_.put(records));
  }
  return {};
}

Status CachedStore::settle() {
  if (is_open_) RECMILL_RETURN_IF_ERROR(inner_->settle());
  return mover_.call([this] { return bring_home(); });
}

std::unique_ptr<RowSnapshot> CachedStore::snapshot(int64_t) {
  std::shared_ptr<RowSnapshot> image;
  const Status status = mover_.call([&]() -> Status {
    RECMILL_RETURN_IF_ERROR(bring_home());
    RECMILL_ASSIGN_OR_RETURN(image, mover_.cut());
    return {};
  });
  if (!status.ok()) return std::make_unique<table::ImageSnapshot>(status);
  return std::make_unique<table::ImageSnapshot>(std::move(image));
}

Status CachedStore::write_rows(const RowBlock& block) {
  RECMILL_RETURN_IF_ERROR(check_block(model_, block));
  return mover_.call([&]() -> Status {
    RECMILL_RETURN_IF_ERROR(bring_home());
    for (int64_t begin = 0; begin < block.count; begin += kRowsAtATime)
      RECMILL_RETURN_IF_ERROR(
          write_some(block, begin, std::min(begin + kRowsAtATime, block.count)));
    return {};
  });
}

/// Rows [begin, end) of the block: at home, and in the slots of those that have one. What the block
/// leaves out of them stays as it is.
Status CachedStore::write_some(const RowBlock& block, int64_t begin, int64_t end) {
  const int64_t first = tables_.begin(block.table) + block.first + begin, count = end - begin;
  std::vector<RowInSlot> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back({first + i});
  RowRecords records(tables_, records_, rows);
  RECMILL_RETURN_IF_ERROR(mover_.fetch(records));
  TableSpec spec = model_.tables[block.table];
  spec.rows = count;
  std::vector<table::EmbeddingTable> room;
  room.push_back(table::EmbeddingTable::without_rows(spec, seed_, table::RowShare(count, 0, 1)));
  RECMILL_RETURN_IF_ERROR(room[0].allocate(nullptr));
  const table::RowRecord& record = records_[block.table];
  for (int64_t i = 0; i < count; ++i) record.unpack(records.record(i), room[0].rows(), i);
  std::vector<std::span<const float>> state;
  RowBlock part = part_of(block, model_.tables[block.table], begin, end, state);
  part.table = 0;
  part.first = 0;
  RECMILL_RETURN_IF_ERROR(write_table(room, part));
  for (int64_t i = 0; i < count; ++i) record.pack(room[0].rows(), i, records.record(i));
  RECMILL_RETURN_IF_ERROR(mover_.put(records));
  if (!is_open_) return {};
  for (const RowInSlot& row : slots_->in_slots(first, first + count))
    slots_->write(row, records.record(static_cast<size_t>(row.row - first)));
  return {};
}

StoreStats CachedStore::stats() const {
  StoreStats stats = is_open_ ? inner_->stats() : StoreStats();
  stats.lookups += outside_.lookups();
  stats.moved = mover_.moved();
  return stats;
}

}  // namespace recmill::store
