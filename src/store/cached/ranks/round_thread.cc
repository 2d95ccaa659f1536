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

/// Steps of the home are as many cuts and, between two of them, as many puts: all ranks cut after
/// the same step, however often each has put.
constexpr int64_t kPutsOfACut = int64_t{1} << 40;

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
                         table::RowHome& home, Communicator& communicator)
    : tables_(tables), records_(records), home_(home), communicator_(communicator), thread_([this] {
        run();
      }) {}

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
    } else {
      changed_.wait(lock);
    }
  }
}

/// Everything that leaves after a step is copied out before anything comes.
Status RoundThread::carry_out(const Rounds::Round& round, EarlyRows* early) {
  const RankStep& plan = *round.plan;
  if (round.kind == Rounds::Kind::before) return exchange(plan.before, {});
  if (round.kind == Rounds::Kind::critical || !plan.any_critical) {
    copy_out(plan.critical, first_);
    copy_out(plan.rest, rest_);
    for (const RowInSlot& row : plan.leave) slots_->empty(row);
  }
  if (round.kind == Rounds::Kind::critical) return exchange(plan.critical, first_);
  if (early != nullptr) lend_early(plan, rest_);
  return exchange(plan.rest, rest_, early);
}

/// A row that was not changed since its fetch is not sent home.
void RoundThread::copy_out(const RowMoves& moves, Outgoing& out) const {
  out.resize(static_cast<size_t>(communicator_.ranks()));
  for (auto& bytes : out) bytes.clear();
  for (const RowMove& move : moves.out) {
    if (move.kind == Kind::fetch) continue;
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
    if (move.kind == Kind::fetch) rows.push_back({move.at.row, move.peer});
  if (rows.empty()) return {};
  std::ranges::sort(rows);
  RowRecords records(tables_, records_, rows);
  RECMILL_RETURN_IF_ERROR(fetch(records));
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
  return put(records);
}

Status RoundThread::fetch(RowRecords& rows) {
  const auto lists = rows.to_fetch();
  return home_.wait(home_.home().fetch(lists, table::RowHome::kNoFence)).status;
}

Status RoundThread::put(const RowRecords& rows) {
  const auto lists = rows.to_put();
  return home_.wait(home_.home().put(lists, cuts_ * kPutsOfACut + puts_++)).status;
}

Result<std::shared_ptr<table::RowSnapshot>> RoundThread::cut() {
  auto answer = home_.wait(home_.home().cut(++cuts_ * kPutsOfACut - 1));
  puts_ = 0;
  if (!answer.status.ok()) return answer.status;
  return std::move(answer.image);
}

}  // namespace recmill::store
