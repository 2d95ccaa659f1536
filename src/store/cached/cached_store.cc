// SPDX-License-Identifier: Apache-2.0
#include "store/cached/cached_store.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "store/batch_check.h"
#include "store/tables/table_rows.h"
#include "table/home/image_snapshot.h"

namespace recmill::store {
namespace {

constexpr int64_t kRowsAtATime = int64_t{1} << 14;  // that go home, or are written, in one call

}  // namespace

CachedStore::CachedStore(ModelSpec model, uint64_t seed, const CacheHomeRows& home,
                         ThreadPool& pool, MakeSlots make_slots)
    : model_(std::move(model)),
      tables_(model_),
      seed_(seed),
      records_(model_.tables.begin(), model_.tables.end()),
      pool_(pool),
      make_slots_(std::move(make_slots)),
      slot_batches_(model_, tables_),
      outside_(model_, tables_, records_, seed_, pool_),
      mover_(tables_, records_, home) {}

CachedStore::~CachedStore() = default;

const Batch& CachedStore::batch_of(Prepared& prepared) {
  return CachedBatches::batch_of(prepared);
}

bool CachedStore::is_outside(Prepared& prepared) {
  return CachedBatches::work_of(prepared).plan == nullptr;
}

Status CachedStore::begin_step(const StepPlan& plan) {
  const auto& step = plan.lookahead;
  RECMILL_CHECK(plan.cache != nullptr);
  RECMILL_RETURN_IF_ERROR(check_next_step(step->step, last_ == nullptr ? -1 : last_->step));
  if (slots_ == nullptr) {
    RECMILL_CHECK(std::ssize(plan.cache->slots) == tables_.count());
    RECMILL_ASSIGN_OR_RETURN(slots_, make_slots_(model_, tables_, *plan.cache));
    mover_.open(*slots_);
    is_open_ = true;
  }
  last_ = step;
  slot_batches_.begin(step->step, step->uses, pool_);
  mover_.plan(step);
  return {};
}

Status CachedStore::prepare_in_slots(const Batch& batch, CachedBatch& work) {
  if (last_ == nullptr || batch.plan->lookahead != last_)
    RECMILL_RETURN_IF_ERROR(begin_step(*batch.plan));
  RECMILL_RETURN_IF_ERROR(slot_batches_.replace_rows(*batch.sparse, work.in_slots, pool_));
  Batch inner = batch;
  inner.sparse = &work.in_slots;
  RECMILL_ASSIGN_OR_RETURN(work.inner, slots_->store().prepare(inner));
  return {};
}

Result<std::unique_ptr<Prepared>> CachedStore::prepare(const Batch& batch) {
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch, pool_));
  RECMILL_CHECK(batch.first_slice == 0 && batch.end_slice == batch.cut.slices);
  const bool plans = batch.plan != nullptr && batch.plan->lookahead != nullptr;
  return batches_.prepare(batch, plans, outside_, [this](const Batch& of, CachedBatch& work) {
    return prepare_in_slots(of, work);
  });
}

Status CachedStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  CachedBatch& work = CachedBatches::work_of(prepared);
  const Batch& batch = CachedBatches::batch_of(prepared);
  if (work.plan == nullptr) {
    const auto fetch = [this](std::span<const RowInSlot>, RowRecords& records) {
      return mover_.call([&]() -> Status {
        RECMILL_RETURN_IF_ERROR(bring_home());
        return mover_.home().fetch(records);
      });
    };
    return outside_.look_up(batch, work.distinct, fetch, output, stream);
  }
  const int64_t step = work.plan->step;
  RECMILL_RETURN_IF_ERROR(mover_.wait_until_ready(step));
  RECMILL_RETURN_IF_ERROR(slots_->begin(step));
  RECMILL_RETURN_IF_ERROR(slots_->store().lookup(*work.inner, output, stream));
  return batch.purpose == Purpose::train ? Status() : end_step(step);
}

Status CachedStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  if (updates.empty()) return {};
  const auto inner = CachedBatches::inner_updates(updates);
  RECMILL_RETURN_IF_ERROR(slots_->store().update(inner, step, stream));
  const StepPlan& plan = CachedBatches::plan_of(updates[0]);
  slots_->states().note_updated(plan.lookahead->uses);
  return end_step(plan.step);
}

Status CachedStore::end_step(int64_t step) {
  RECMILL_RETURN_IF_ERROR(slots_->end(step));
  ended_ = step;
  mover_.done(step);
  return {};
}

/// What is in slots and was updated since this was last called. On the mover's thread.
Result<std::vector<RowInSlot>> CachedStore::take_changed() {
  if (!is_open_) return std::vector<RowInSlot>();
  if (ended_ >= 0) RECMILL_RETURN_IF_ERROR(slots_->wait_for_end(ended_));
  return slots_->states().take_changed();
}

/// Puts what was updated in slots, where it stays. Within MoverThread::call().
Status CachedStore::bring_home() {
  RECMILL_ASSIGN_OR_RETURN(const auto changed, take_changed());
  for (int64_t begin = 0; begin < std::ssize(changed); begin += kRowsAtATime) {
    const auto some = std::span(changed).subspan(
        static_cast<size_t>(begin),
        static_cast<size_t>(std::min(kRowsAtATime, std::ssize(changed) - begin)));
    RowRecords records(tables_, records_, some);
    RECMILL_RETURN_IF_ERROR(slots_->read(some, records));
    RECMILL_RETURN_IF_ERROR(mover_.home().put(records));
  }
  return {};
}

Status CachedStore::settle() {
  if (is_open_) RECMILL_RETURN_IF_ERROR(slots_->store().settle());
  return mover_.call([this] { return bring_home(); });
}

Result<ComingImage> CachedStore::cut() {
  ComingImage image;
  RECMILL_RETURN_IF_ERROR(mover_.call_between([&]() -> Status {
    RECMILL_RETURN_IF_ERROR(mover_.home().wait_for_cuts());
    RECMILL_ASSIGN_OR_RETURN(const auto changed, take_changed());
    RowRecords records(tables_, records_, changed);
    if (is_open_) RECMILL_RETURN_IF_ERROR(slots_->read(changed, records));
    image = mover_.home().cut(std::move(records));
    return {};
  }));
  return image;
}

std::unique_ptr<RowSnapshot> CachedStore::snapshot(int64_t) {
  const auto coming = cut();
  if (!coming.ok()) return std::make_unique<table::ImageSnapshot>(coming.status());
  const auto& image = coming->get();
  if (!image.ok()) return std::make_unique<table::ImageSnapshot>(image.status());
  return std::make_unique<table::ImageSnapshot>(image->rows);
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
  RECMILL_RETURN_IF_ERROR(mover_.home().fetch(records));
  const RowRecords before = records;
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
  RECMILL_RETURN_IF_ERROR(
      mover_.home().put(records.changed_since(before, tables_, records_, rows)));
  if (!is_open_) return {};
  const auto in_slots = slots_->states().in_slots(first, first + count);
  RowRecords of_slots(tables_, records_, in_slots);
  for (size_t i = 0; i < in_slots.size(); ++i)
    std::memcpy(of_slots.record(i), records.record(static_cast<size_t>(in_slots[i].row - first)),
                static_cast<size_t>(record.bytes()));
  return slots_->write(in_slots, of_slots);
}

StoreStats CachedStore::stats() const {
  StoreStats stats = is_open_ ? slots_->store().stats() : StoreStats();
  stats.lookups += outside_.lookups();
  stats.moved = mover_.moved();
  return stats;
}

}  // namespace recmill::store
