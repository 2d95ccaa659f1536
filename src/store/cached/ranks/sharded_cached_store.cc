// SPDX-License-Identifier: Apache-2.0
#include "store/cached/ranks/sharded_cached_store.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "comm/gather_values.h"
#include "store/batch_check.h"
#include "store/tables/table_rows.h"
#include "table/home/image_snapshot.h"
#include "table/placed_tables.h"

namespace recmill::store {
namespace {

constexpr int64_t kRowsAtATime = int64_t{1} << 14;  // that go home, or are written, in one call

/// Of a rank's `slots` [slot tables] where each is: at its rank, or, of those `copied`, everywhere.
PlacementPlan placement_of_slots(const ModelSpec& inner, const SlotTables& tables, int ranks,
                                 const CacheSize& size) {
  PlacementPlan plan{.planner = "cache", .devices = ranks, .paths = {}, .tables = {}};
  for (size_t t = 0; t < inner.tables.size(); ++t) {
    const int k = tables.slot_table_of(static_cast<int>(t));
    TablePlacement& table = plan.tables.emplace_back();
    table.table = inner.tables[t].name;
    table.rows = inner.tables[t].rows;
    table.dim = inner.tables[t].dim;
    int64_t end = 0;
    const auto add = [&](int64_t slots, const FetchPath& path) {
      if (slots > 0) table.runs.push_back({end += slots, plan.path(path)});
    };
    for (int rank = 0; rank < ranks; ++rank) add(size.slots[k], FetchPath::at(rank, ranks));
    for (int rank = 0; rank < ranks; ++rank)
      add(size.copied_slots[k] / ranks, FetchPath::everywhere(rank, ranks));
  }
  return plan;
}

}  // namespace

Result<std::unique_ptr<ShardedCachedStore>> ShardedCachedStore::create(
    ModelSpec model, uint64_t seed, const CacheHomeRows& home, Communicator& communicator,
    ThreadPool& pool, ShardedOptions options, StoreKernels kernels) {
  RECMILL_ASSIGN_OR_RETURN(auto beside, communicator.duplicate());
  // The sums of a row that all ranks have meet at its home. Kernels by table are those of one rank.
  options.reduce = CopyReduce::sparse;
  kernels.row_update.clear();
  return std::unique_ptr<ShardedCachedStore>(
      new ShardedCachedStore(std::move(model), seed, home, communicator, std::move(beside), pool,
                             options, std::move(kernels)));
}

ShardedCachedStore::ShardedCachedStore(ModelSpec model, uint64_t seed, const CacheHomeRows& home,
                                       Communicator& communicator,
                                       std::unique_ptr<Communicator> beside, ThreadPool& pool,
                                       ShardedOptions options, StoreKernels kernels)
    : model_(std::move(model)),
      homes_(model_, communicator.ranks()),
      seed_(seed),
      is_shared_(home.is_shared),
      records_(model_.tables.begin(), model_.tables.end()),
      communicator_(communicator),
      beside_(std::move(beside)),
      pool_(pool),
      options_(options),
      kernels_(std::move(kernels)),
      slot_batches_(model_, homes_.tables()),
      outside_(model_, homes_.tables(), records_, seed_, pool_),
      rounds_(homes_.tables(), records_, home, *beside_),
      at_homes_(homes_, records_, home.is_shared, rounds_) {}

ShardedCachedStore::~ShardedCachedStore() = default;

/// On the thread that prepares; rows get their room on the one that trains.
Status ShardedCachedStore::open(const CacheSize& size) {
  RECMILL_CHECK(std::ssize(size.slots) == homes_.tables().count());
  RECMILL_CHECK(size.slots.size() == size.copied_slots.size());
  size_ = size;
  const int ranks = communicator_.ranks();
  std::vector<int64_t> rows;
  for (size_t k = 0; k < size.slots.size(); ++k)
    rows.push_back(ranks * size.slots[k] + size.copied_slots[k]);
  ModelSpec inner = Slots::inner_model(model_, homes_.tables(), rows);
  RECMILL_ASSIGN_OR_RETURN(
      const auto placed,
      table::PlacedTables::create(placement_of_slots(inner, homes_.tables(), ranks, size),
                                  inner.tables, ranks));
  const auto shares = placed->shares(communicator_.rank());
  std::unique_ptr<HostRows> host;
  if (options_.share_rows && HostRows::possible(communicator_))
    host =
        std::make_unique<HostRows>(inner, shares, communicator_, Slots::memory_of(homes_.tables()));
  auto tables = Slots::inner_tables(inner, seed_, shares);
  auto of = std::make_unique<RankTables>(std::move(inner), std::move(tables), pool_, kernels_);
  of_ = of.get();
  host_ = host.get();
  slots_ = std::make_unique<Slots>(model_, homes_.tables(), seed_, *of, size.copied_slots);
  inner_ = std::make_unique<ShardedStore>(std::move(of), std::move(host), communicator_, options_);
  rounds_.open(*slots_);
  is_open_ = true;
  return {};
}

/// Collective, on the thread that trains.
Status ShardedCachedStore::allocate() {
  if (std::exchange(has_rows_, true)) return {};
  const std::lock_guard lock(preparing_);
  if (host_ != nullptr) RECMILL_RETURN_IF_ERROR(host_->open());
  return Slots::allocate(homes_.tables(), of_->tables, host_);
}

RowInSlot ShardedCachedStore::in_inner(const RowInSlot& row) const {
  const int64_t slots = size_.slots[slots_->slot_table_of(row)];
  const int64_t before = slots * (row.holder == kEverywhere ? communicator_.ranks() : row.holder);
  return {row.row, static_cast<int32_t>(before + row.slot), row.holder};
}

/// Room for what comes with a step for the one after the next.
std::shared_ptr<EarlyRows> ShardedCachedStore::early_rows(const RankStep& step) const {
  std::vector<EarlyRows::Row> rows;
  for (const RowInSlot& row : step.early_in) {
    const int table = homes_.tables().table_of(row.row);
    const int64_t copied = size_.copied_slots[slots_->slot_table_of(row)];
    rows.push_back({row.holder, row.row, table, copied + row.slot, model_.tables[table].dim});
  }
  return std::make_shared<EarlyRows>(rows, communicator_.ranks());
}

/// Both ranks know alike which rows one lends to the other, and what of them was sent before.
std::shared_ptr<const UnaskedRows> ShardedCachedStore::unasked_rows(const RankStep& step,
                                                                    const Early& early) const {
  const auto ranks = static_cast<size_t>(communicator_.ranks());
  const auto tables = static_cast<size_t>(homes_.tables().tables());
  using Lists = std::vector<std::vector<std::vector<int64_t>>>;  // [ranks][tables]
  Lists out(ranks, Lists::value_type(tables)), in = out;
  const auto add = [&](const RowInSlot& row, std::vector<std::vector<int64_t>>& lists) {
    const int64_t copied = size_.copied_slots[slots_->slot_table_of(row)];
    lists[homes_.tables().table_of(row.row)].push_back(copied + row.slot);
  };
  const auto is_early = [&](const auto& row, const auto& of_step) {
    return early.with != nullptr && std::ranges::binary_search(of_step(*early.with), row);
  };
  for (const RowLent& lent : step.lent)
    if (!is_early(lent, [](const RankStep& of) { return std::span(of.early_out); }))
      add(lent.row, out[lent.user]);
  for (const RowInSlot& row : step.uses) {
    if (row.holder == kEverywhere || row.holder == communicator_.rank()) continue;
    if (!is_early(row, [](const RankStep& of) { return std::span(of.early_in); }))
      add(row, in[row.holder]);
  }
  auto rows = std::make_shared<UnaskedRows>();
  rows->early = early.rows;
  for (const auto& [lists, to] : {std::pair{&out, &rows->out}, {&in, &rows->in}}) {
    for (auto& of_rank : *lists) {
      GroupedIds& ids = to->emplace_back();
      for (auto& slots : of_rank) {
        std::ranges::sort(slots);
        ids.ids.insert(ids.ids.end(), slots.begin(), slots.end());
        ids.ends.push_back(std::ssize(ids.ids));
      }
    }
  }
  return rows;
}

Status ShardedCachedStore::begin_step(const StepPlan& plan) {
  const auto& step = plan.of_rank;
  RECMILL_CHECK(plan.cache != nullptr);
  RECMILL_RETURN_IF_ERROR(check_next_step(step->step, last_ == nullptr ? -1 : last_->step));
  if (inner_ == nullptr) RECMILL_RETURN_IF_ERROR(open(*plan.cache));
  last_ = step;
  inner_uses_.clear();
  for (const RowInSlot& row : step->uses) inner_uses_.push_back(in_inner(row));
  slot_batches_.begin(step->step, inner_uses_, pool_);
  if (host_ != nullptr) {
    rounds_.plan(step, nullptr);
    return {};
  }
  unasked_ = unasked_rows(*step, early_.size() == 2 ? early_.front() : Early());
  if (early_.size() == 2) early_.pop_front();
  early_.push_back({step, early_rows(*step)});
  rounds_.plan(step, early_.back().rows);
  return {};
}

Status ShardedCachedStore::prepare_in_slots(const Batch& batch, CachedBatch& work) {
  if (last_ == nullptr || batch.plan->of_rank != last_)
    RECMILL_RETURN_IF_ERROR(begin_step(*batch.plan));
  RECMILL_RETURN_IF_ERROR(slot_batches_.replace_rows(*batch.sparse, work.in_slots, pool_));
  const std::shared_lock lock(preparing_);
  Batch inner = batch;
  inner.sparse = &work.in_slots;
  RECMILL_ASSIGN_OR_RETURN(work.inner, inner_->prepare(inner, unasked_));
  return {};
}

Result<std::unique_ptr<Prepared>> ShardedCachedStore::prepare(const Batch& batch) {
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch, pool_));
  const bool plans = batch.plan != nullptr && batch.plan->of_rank != nullptr;
  return batches_.prepare(batch, plans, outside_, [this](const Batch& of, CachedBatch& work) {
    return prepare_in_slots(of, work);
  });
}

Status ShardedCachedStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  CachedBatch& work = CachedBatches::work_of(prepared);
  const Batch& batch = CachedBatches::batch_of(prepared);
  if (work.plan == nullptr) {
    const auto fetch = [this](std::span<const RowInSlot> rows, RowRecords& records) {
      return rounds_.call([&]() -> Status {
        RECMILL_RETURN_IF_ERROR(bring_home(take_changed()));
        return at_homes_.fetch(rows, records);
      });
    };
    return outside_.look_up(batch, work.distinct, fetch, output, stream);
  }
  RECMILL_RETURN_IF_ERROR(allocate());
  const int64_t step = work.plan->step;
  RECMILL_RETURN_IF_ERROR(rounds_.wait_until_ready(step, size_.prefetch));
  RECMILL_RETURN_IF_ERROR(inner_->lookup(*work.inner, output, stream));
  if (std::exchange(looked_up_, step) != step) count_lookups(*work.plan->of_rank);
  if (batch.purpose != Purpose::train) rounds_.done(step);
  return {};
}

Status ShardedCachedStore::update(std::span<const Update> updates, const Step& step,
                                  Stream& stream) {
  if (updates.empty()) return {};
  const auto inner = CachedBatches::inner_updates(updates);
  RECMILL_RETURN_IF_ERROR(inner_->update(inner, step, stream));
  const StepPlan& plan = CachedBatches::plan_of(updates[0]);
  slots_->note_updated(plan.of_rank->held);
  count_sums(*plan.of_rank);
  rounds_.done(plan.step);
  return {};
}

/// Once a step: weights of rows that another rank has.
void ShardedCachedStore::count_lookups(const RankStep& step) {
  for (const RowInSlot& row : step.uses)
    weights_ += row.holder != kEverywhere && row.holder != communicator_.rank() ? 1 : 0;
}

/// Of rows that all have, sums meet at their home, which sends the new weights to all.
void ShardedCachedStore::count_sums(const RankStep& step) {
  const auto changes = [&](const RowInSlot& row) { return !homes_.tables().is_frozen(row.row); };
  const int rank = communicator_.rank();
  for (const RowInSlot& row : step.uses) {
    const int32_t meet = row.holder == kEverywhere ? homes_.of(row.row) : row.holder;
    gradients_ += meet != rank && changes(row) ? 1 : 0;
  }
  for (const RowInSlot& row : step.held)
    if (row.holder == kEverywhere && homes_.of(row.row) == rank && changes(row))
      weights_ += communicator_.ranks() - 1;
}

/// What is in this rank's slots and was updated since this was last called, ascending; of rows that
/// all have, the home's own copy. Within RoundThread::call().
std::vector<RowInSlot> ShardedCachedStore::take_changed() {
  std::vector<RowInSlot> changed;
  if (is_open_) changed = slots_->take_changed();
  std::erase_if(changed, [&](const RowInSlot& row) {
    return row.holder == kEverywhere && homes_.of(row.row) != communicator_.rank();
  });
  return changed;
}

/// Puts what was updated in slots, where it stays. Collective, within RoundThread::call().
Status ShardedCachedStore::bring_home(std::span<const RowInSlot> changed) {
  // What a cut brings may not have come yet.
  RECMILL_RETURN_IF_ERROR(rounds_.home().wait_for_cuts());
  RECMILL_ASSIGN_OR_RETURN(const auto counts, gather_values(std::ssize(changed), *beside_));
  const int64_t most = std::ranges::max(counts);
  for (int64_t begin = 0; begin < most; begin += kRowsAtATime) {
    const int64_t from = std::min(begin, std::ssize(changed));
    const int64_t end = std::min(begin + kRowsAtATime, std::ssize(changed));
    RECMILL_RETURN_IF_ERROR(at_homes_.put(
        changed.subspan(static_cast<size_t>(from), static_cast<size_t>(end - from)), *slots_));
  }
  return {};
}

Status ShardedCachedStore::settle() {
  if (is_open_) RECMILL_RETURN_IF_ERROR(inner_->settle());
  return rounds_.call([this] { return bring_home(take_changed()); });
}

Result<ComingImage> ShardedCachedStore::cut() {
  ComingImage image;
  RECMILL_RETURN_IF_ERROR(rounds_.call([&]() -> Status {
    RECMILL_RETURN_IF_ERROR(rounds_.home().wait_for_cuts());
    auto changed = take_changed();
    // Rows of other ranks' homes go there before.
    if (!is_shared_) {
      RECMILL_RETURN_IF_ERROR(bring_home(changed));
      changed.clear();
    }
    RowRecords records(homes_.tables(), records_, changed);
    for (size_t i = 0; i < changed.size(); ++i) slots_->copy_out(changed[i], records.record(i));
    image = rounds_.home().cut(std::move(records));
    return {};
  }));
  return image;
}

std::unique_ptr<RowSnapshot> ShardedCachedStore::snapshot(int64_t) {
  const auto coming = cut();
  if (!coming.ok()) return std::make_unique<table::ImageSnapshot>(coming.status());
  const auto& image = coming->get();
  if (!image.ok()) return std::make_unique<table::ImageSnapshot>(image.status());
  return std::make_unique<table::ImageSnapshot>(image->rows);
}

Status ShardedCachedStore::write_rows(const RowBlock& block) {
  RECMILL_RETURN_IF_ERROR(check_block(model_, block));
  return rounds_.call([&]() -> Status {
    for (int64_t begin = 0; begin < block.count; begin += kRowsAtATime)
      RECMILL_RETURN_IF_ERROR(
          write_some(block, begin, std::min(begin + kRowsAtATime, block.count)));
    rounds_.fetch_again();
    return {};
  });
}

/// Rows [begin, end) of the block: at home here, in slots here, and where they have come early.
/// What the block leaves out of them stays as it is. A row whose home is elsewhere is written there
/// too, and goes there again.
Status ShardedCachedStore::write_some(const RowBlock& block, int64_t begin, int64_t end) {
  const int64_t first = homes_.tables().begin(block.table) + block.first + begin;
  std::vector<RowInSlot> rows;
  for (int64_t row = first; row < first + end - begin; ++row)
    if (homes_.of(row) == communicator_.rank()) rows.push_back({row});
  RowRecords records(homes_.tables(), records_, rows);
  RECMILL_RETURN_IF_ERROR(rounds_.home().fetch(records));
  const RowRecords before = records;
  TableSpec spec = model_.tables[block.table];
  spec.rows = 1;
  std::vector<table::EmbeddingTable> room;
  room.push_back(table::EmbeddingTable::without_rows(spec, seed_, table::RowShare(1, 0, 1)));
  RECMILL_RETURN_IF_ERROR(room[0].allocate(nullptr));
  const table::RowRecord& shape = records_[block.table];
  const auto change = [&](int64_t row, std::byte* record) -> Status {
    shape.unpack(record, room[0].rows(), 0);
    const int64_t at = row - homes_.tables().begin(block.table) - block.first;
    std::vector<std::span<const float>> state;
    RowBlock one = part_of(block, model_.tables[block.table], at, at + 1, state);
    one.table = 0;
    one.first = 0;
    RECMILL_RETURN_IF_ERROR(write_table(room, one));
    shape.pack(room[0].rows(), 0, record);
    return {};
  };
  for (size_t i = 0; i < rows.size(); ++i)
    RECMILL_RETURN_IF_ERROR(change(rows[i].row, records.record(i)));
  RECMILL_RETURN_IF_ERROR(
      rounds_.home().put(records.changed_since(before, homes_.tables(), records_, rows)));
  if (!is_open_ || !has_rows_) return {};
  std::vector<std::byte> record(static_cast<size_t>(shape.bytes()) + 8);
  for (const RowInSlot& row : slots_->in_slots(first, first + end - begin)) {
    slots_->copy_out(row, record.data());
    RECMILL_RETURN_IF_ERROR(change(row.row, record.data()));
    slots_->write(row, record.data(), /*updated=*/true);
  }
  for (const auto& early : rounds_.came_early()) {
    for (const auto& [row, weights] : early->in_range(first, first + end - begin)) {
      RECMILL_RETURN_IF_ERROR(change(row, record.data()));
      shape.read_weights(record.data(), weights);
    }
  }
  return {};
}

StoreStats ShardedCachedStore::stats() const {
  StoreStats stats = is_open_ ? inner_->stats() : StoreStats();
  stats.lookups += outside_.lookups();
  stats.moved = rounds_.moved();
  stats.moved.gradients = gradients_;
  stats.moved.weights = weights_;
  return stats;
}

}  // namespace recmill::store
