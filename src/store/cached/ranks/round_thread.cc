// SPDX-License-Identifier: Apache-2.0
#include "store/cached/ranks/round_thread.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace recmill::store {
namespace {

using Kind = RowMove::Kind;

/// What is in front of a row in a message; the record begins at a multiple of 4 bytes.
constexpr uint32_t kHasRecord = 1, kUpdated = 2;

size_t whole_words(int64_t bytes) {
  return (static_cast<size_t>(bytes) + 3) / 4 * 4;
}

/// Room for a row's record at the end of a message.
std::byte* append(uint32_t flags, int64_t bytes, std::vector<std::byte>& message) {
  const size_t begin = message.size();
  message.resize(begin + sizeof(flags) + whole_words(bytes));
  std::memcpy(message.data() + begin, &flags, sizeof(flags));
  return message.data() + begin + sizeof(flags);
}

}  // namespace

RoundThread::RoundThread(const SlotTables& tables, std::span<const table::RowRecord> records,
                         const CacheHomeRows& home, Communicator& communicator)
    : tables_(tables),
      records_(records),
      is_shared_(home.is_shared),
      home_(tables, records, home,
            [this] {
              std::lock_guard lock(mutex_);
              awake_ = true;
              changed_.notify_all();
            }),
      communicator_(communicator),
      thread_([this] { run(); }) {}

RoundThread::~RoundThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void RoundThread::plan(Rounds::Plan plan, std::shared_ptr<EarlyRows> early) {
  std::lock_guard lock(mutex_);
  if (early != nullptr) early_.emplace(plan->step, std::move(early));
  rounds_.plan(std::move(plan));
  changed_.notify_all();
}

Status RoundThread::wait_until_ready(int64_t step, int64_t prefetch) {
  std::unique_lock lock(mutex_);
  if (step == 0) {
    rounds_.begin(prefetch);
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return rounds_.is_ready(step) || !failure_.ok(); });
  return failure_;
}

void RoundThread::done(int64_t step) {
  std::lock_guard lock(mutex_);
  rounds_.done(step);
  changed_.notify_all();
}

Status RoundThread::call(const std::function<Status()>& body) {
  std::unique_lock lock(mutex_);
  return work_.call(body, lock, changed_);
}

void RoundThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (std::exchange(awake_, false)) {
      lock.unlock();
      home_.take_answers();
      lock.lock();
      if (failure_.ok()) failure_ = home_.failure();
      changed_.notify_all();
    }
    if (is_shared_) fetch_ahead(lock);
    if (const auto round = failure_.ok() ? rounds_.next() : std::nullopt) {
      std::shared_ptr<EarlyRows> early;
      if (round->kind == Rounds::Kind::rest)
        if (auto of_step = early_.extract(round->plan->step)) early = std::move(of_step.mapped());
      lock.unlock();
      Status status = carry_out(*round, early.get());
      if (early != nullptr) came_early_.push_back(std::move(early));
      if (came_early_.size() > 2) came_early_.pop_front();
      lock.lock();
      if (status.ok()) rounds_.carried_out(*round);
      if (!status.ok()) failure_ = std::move(status);
      changed_.notify_all();
    } else if (!work_.empty()) {
      work_.carry_out(failure_, lock, changed_);
    } else if (stop_) {
      return;
    } else if (!awake_) {
      changed_.wait(lock);
    }
  }
}

/// Everything that leaves after a step is copied out before anything comes.
Status RoundThread::carry_out(const Rounds::Round& round, EarlyRows* early) {
  const RankStep& plan = *round.plan;
  if (round.kind == Rounds::Kind::before) {
    if (!is_shared_) return exchange(plan.before, {});
    RECMILL_RETURN_IF_ERROR(communicator_.barrier());            // what others wrote is there
    const int64_t asked = std::exchange(asked_, plan.step - 2);  // of these none was asked for
    RECMILL_RETURN_IF_ERROR(fill_from_home(plan.before, plan.step - 1, plan.step - 1));
    asked_ = std::max(asked, asked_);
    return {};
  }
  if (round.kind == Rounds::Kind::critical || !plan.any_critical) {
    copy_out(plan.critical, first_);
    copy_out(plan.rest, rest_);
    if (is_shared_)
      leave(plan);
    else
      home_.pass(plan.step);
    for (const RowInSlot& row : plan.leave) slots_->empty(row);
  }
  if (round.kind == Rounds::Kind::critical) return exchange(plan.critical, first_);
  if (early != nullptr) lend_early(plan, rest_);
  RECMILL_RETURN_IF_ERROR(exchange(plan.rest, rest_, early));
  return is_shared_ ? fill_from_home(plan.rest, plan.step, plan.fence) : Status();
}

/// Asks a home that is shared for what comes after a step, while the step runs. The home keeps the
/// fence, so that nobody waits here.
void RoundThread::fetch_ahead(std::unique_lock<std::mutex>& lock) {
  const int64_t step = rounds_.over() + 1;
  const auto plan = asked_ < step && step > written_before_ ? rounds_.planned(step) : nullptr;
  if (step < 0 || plan == nullptr || !failure_.ok()) return;
  lock.unlock();
  home_.fetch_for(step, rows_from_home(plan->rest), plan->fence);
  asked_ = step;
  lock.lock();
}

// Other ranks may not have written theirs yet: they have when they take part in the next round.
void RoundThread::fetch_again() {
  if (!is_shared_) return;
  std::lock_guard lock(mutex_);
  home_.drop_fetches();
  asked_ = rounds_.over();
  written_before_ = asked_ + 1;
}

/// Rows of this rank's slots that a shared home takes: an empty list where there are none, which
/// says that the step is over here.
void RoundThread::leave(const RankStep& plan) {
  std::vector<RowInSlot> updated;
  for (const RowMoves* moves : {&plan.critical, &plan.rest})
    for (const RowMove& move : moves->out)
      if (move.kind == Kind::evict && slots_->is_updated(move.at)) updated.push_back(move.at);
  std::ranges::sort(updated);
  RowRecords records(tables_, records_, updated);
  for (size_t i = 0; i < updated.size(); ++i) slots_->copy_out(updated[i], records.record(i));
  written_back_ += std::ssize(updated);
  home_.leave_after(plan.step, std::move(records));
}

/// Ascending.
std::vector<RowInSlot> RoundThread::rows_from_home(const RowMoves& moves) {
  std::vector<RowInSlot> rows;
  for (const RowMove& move : moves.in)
    if (move.kind == Kind::fetch) rows.push_back(move.at);
  std::ranges::sort(rows);
  return rows;
}

Status RoundThread::fill_from_home(const RowMoves& moves, int64_t step, int64_t fence) {
  const auto rows = rows_from_home(moves);
  if (asked_ < step) home_.fetch_for(step, rows, fence);
  asked_ = step;
  RECMILL_ASSIGN_OR_RETURN(const RowRecords records, home_.wait_for_rows(step));
  for (size_t i = 0; i < rows.size(); ++i) slots_->fill(rows[i], records.record(i));
  fetched_ += std::ssize(rows);
  return {};
}

/// A row that was not changed since its fetch is not sent home.
void RoundThread::copy_out(const RowMoves& moves, Outgoing& out) const {
  out.resize(static_cast<size_t>(communicator_.ranks()));
  for (auto& bytes : out) bytes.clear();
  for (const RowMove& move : moves.out) {
    if (move.kind == Kind::fetch || !goes_over_ranks(move)) continue;
    const bool updated = slots_->is_updated(move.at);
    const bool sends = move.kind != Kind::evict || updated;
    std::byte* const record =
        append((sends ? kHasRecord : 0) | (updated ? kUpdated : 0),
               sends ? records_[tables_.table_of(move.at.row)].bytes() : 0, out[move.peer]);
    if (sends) slots_->copy_out(move.at, record);
  }
}

/// Weights alone: behind what moves.
void RoundThread::lend_early(const RankStep& plan, Outgoing& out) const {
  for (const auto& [user, row] : plan.early_out) {
    auto& message = out[static_cast<size_t>(user)];
    const size_t begin = message.size();
    message.resize(begin + whole_words(records_[tables_.table_of(row.row)].weight_bytes()));
    slots_->copy_weights(row, message.data() + begin);
  }
}

Status RoundThread::take_early(int rank, std::span<const std::byte>& message,
                               EarlyRows& early) const {
  for (size_t n = 0; n < early.count(rank); ++n) {
    const table::RowRecord& record = records_[early.table(rank, n)];
    const size_t bytes = whole_words(record.weight_bytes());
    if (message.size() < bytes) return wrong_length(rank);
    record.read_weights(message.data(), early.room(rank, n));
    message = message.subspan(bytes);
  }
  return {};
}

Status RoundThread::fetch_from_home(const RowMoves& moves, Outgoing& out) {
  out.resize(static_cast<size_t>(communicator_.ranks()));
  std::vector<RowInSlot> rows;
  for (const RowMove& move : moves.out)
    if (move.kind == Kind::fetch && !is_shared_) rows.push_back({move.at.row, move.peer});
  if (rows.empty()) return {};
  std::ranges::sort(rows);
  RowRecords records(tables_, records_, rows);
  RECMILL_RETURN_IF_ERROR(home_.fetch(records));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto bytes = records_[tables_.table_of(rows[i].row)].bytes();
    std::byte* const record = append(kHasRecord, bytes, out[rows[i].slot]);
    std::memcpy(record, records.record(i), static_cast<size_t>(bytes));
  }
  return {};
}

/// Collective. Of each rank first come fetches, as moves are ordered.
Status RoundThread::exchange(const RowMoves& moves, const Outgoing& from_slots, EarlyRows* early) {
  Outgoing out;
  RECMILL_RETURN_IF_ERROR(fetch_from_home(moves, out));
  std::vector<std::span<const std::byte>> pieces;
  for (size_t rank = 0; rank < out.size(); ++rank) {
    if (!from_slots.empty())
      out[rank].insert(out[rank].end(), from_slots[rank].begin(), from_slots[rank].end());
    pieces.emplace_back(out[rank]);
  }
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator_.all_to_all(pieces));
  return deliver(moves, received, early);
}

Status RoundThread::deliver(const RowMoves& moves, const Received& received, EarlyRows* early) {
  std::vector<std::pair<RowInSlot, const std::byte*>> home;  // rows that come home
  size_t next = 0;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    auto message = received.from(rank);
    for (; next < moves.in.size() && moves.in[next].peer == rank; ++next) {
      const RowMove& move = moves.in[next];
      if (!goes_over_ranks(move)) continue;
      uint32_t flags = 0;
      if (message.size() < sizeof(flags)) return wrong_length(rank);
      std::memcpy(&flags, message.data(), sizeof(flags));
      const bool sent = (flags & kHasRecord) != 0;
      const size_t bytes = sent ? whole_words(records_[tables_.table_of(move.at.row)].bytes()) : 0;
      if (message.size() - sizeof(flags) < bytes) return wrong_length(rank);
      const std::byte* const record = message.data() + sizeof(flags);
      message = message.subspan(sizeof(flags) + bytes);
      if (move.kind == Kind::evict) {
        if (sent) home.emplace_back(move.at, record);
        continue;
      }
      slots_->fill(move.at, record, (flags & kUpdated) != 0);
      if (move.kind == Kind::fetch) ++fetched_;
      if (move.kind == Kind::hand_over && rank != communicator_.rank()) ++handed_over_;
    }
    if (early != nullptr) RECMILL_RETURN_IF_ERROR(take_early(rank, message, *early));
    if (!message.empty()) return wrong_length(rank);
  }
  written_back_ += std::ssize(home);
  return put_home(home);
}

Status RoundThread::wrong_length(int rank) const {
  return Status::Failed("rows of " + communicator_.name(rank) + " have a wrong length");
}

Status RoundThread::put_home(std::span<std::pair<RowInSlot, const std::byte*>> rows) {
  if (rows.empty()) return {};
  std::ranges::sort(rows, {}, [](const auto& row) { return row.first.row; });
  std::vector<RowInSlot> named;
  for (const auto& [row, record] : rows) named.push_back(row);
  RowRecords records(tables_, records_, named);
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(records.record(i), rows[i].second,
                static_cast<size_t>(records_[tables_.table_of(named[i].row)].bytes()));
  return home_.put(records);
}

}  // namespace recmill::store
