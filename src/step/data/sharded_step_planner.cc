// SPDX-License-Identifier: Apache-2.0
#include "step/data/sharded_step_planner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "lookahead/rank_messages.h"
#include "step/data/cache_step_planner.h"
#include "store/batch_check.h"

namespace recmill::train {
namespace {

using Message = std::vector<std::byte>;

template <typename T>
void append(std::span<const T> values, Message& message) {
  const auto bytes = std::as_bytes(values);
  const size_t at = message.size();
  message.resize(at + bytes.size());
  if (!bytes.empty()) std::memcpy(message.data() + at, bytes.data(), bytes.size());
}

std::vector<int64_t> numbers_of(std::span<const std::byte> message) {
  std::vector<int64_t> numbers(message.size() / sizeof(int64_t));
  if (!numbers.empty())
    std::memcpy(numbers.data(), message.data(), numbers.size() * sizeof(int64_t));
  return numbers;
}

/// In front of parts that could not be made is a 1, and behind it why.
constexpr std::byte kMade{0}, kFailed{1};

}  // namespace

ShardedStepPlanner::ShardedStepPlanner(const ModelSpec& model, std::vector<int64_t> slot_bytes,
                                       const lookahead::CacheOptions& options, ThreadPool& pool,
                                       Communicator& communicator)
    : model_(model),
      slot_bytes_(std::move(slot_bytes)),
      options_(options),
      pool_(pool),
      communicator_(communicator),
      homes_(model, communicator_.ranks()),
      rows_(model),
      decider_(homes_.tables(), communicator_.rank(), communicator_.ranks(), options.design,
               /*early=*/!communicator.shares_memory()) {
  options_.ranks = communicator_.ranks();
}

ShardedStepPlanner::~ShardedStepPlanner() {
  if (!over_) (void)exchange(Call::leave, std::vector<Message>(communicator_.ranks()));
}

int64_t ShardedStepPlanner::ahead() const {
  return CacheStepPlanner::ahead(options_);
}

/// Each message [ranks] begins with what it is: ranks that are out of step find out.
Result<Received> ShardedStepPlanner::exchange(Call call, std::vector<Message> messages) {
  std::vector<std::span<const std::byte>> pieces;
  for (Message& message : messages) {
    const auto head = std::as_bytes(std::span(&call, 1));
    message.insert(message.begin(), head.begin(), head.end());
    pieces.emplace_back(message);
  }
  auto received = communicator_.all_to_all(pieces);
  over_ = over_ || !received.ok() || call == Call::leave;
  if (!received.ok()) return received.status();
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const auto theirs = numbers_of(received->from(rank).first(sizeof(Call)));
    if (theirs[0] == static_cast<int64_t>(call)) continue;
    over_ = true;
    return Status::Failed(communicator_.name(rank) + (theirs[0] == static_cast<int64_t>(Call::leave)
                                                          ? " plans no further step"
                                                          : " plans another step than this rank"));
  }
  return received;
}

Status ShardedStepPlanner::see(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(store::check_rows(model_, batch.sparse, pool_));
  std::vector<int64_t> rows;
  rows_.find(batch.sparse, 0, batch.sparse.samples, pool_, rows);
  return see_uses(rows, batch.held_bytes());
}

Status ShardedStepPlanner::see_uses(std::span<const int64_t> rows, int64_t batch_bytes) {
  std::vector<std::vector<int64_t>> of_deciders(static_cast<size_t>(communicator_.ranks()));
  for (const int64_t row : rows) of_deciders[homes_.of(row)].push_back(row);
  std::vector<Message> messages(of_deciders.size());
  for (size_t rank = 0; rank < messages.size(); ++rank)
    lookahead::append_rows(of_deciders[rank], messages[rank]);
  RECMILL_ASSIGN_OR_RETURN(const Received received, exchange(Call::uses, std::move(messages)));
  std::vector<std::vector<int64_t>> of_users;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    RECMILL_ASSIGN_OR_RETURN(of_users.emplace_back(),
                             lookahead::read_rows(received.from(rank).subspan(sizeof(Call))));
  }
  auto uses = lookahead::merge_uses(of_users);
  const int64_t distinct = uses.count();
  decider_.see(std::move(uses));
  return size_ == nullptr ? count(distinct, batch_bytes) : Status();
}

/// Until the size is chosen all ranks know how many rows there are.
Status ShardedStepPlanner::count(int64_t distinct, int64_t batch_bytes) {
  std::vector<int64_t> own{distinct, batch_bytes, options_.memory};
  for (const auto* counts : {&decider_.rows_seen(), &decider_.copied_seen()})
    own.insert(own.end(), counts->begin(), counts->end());
  std::vector<Message> messages(static_cast<size_t>(communicator_.ranks()));
  for (Message& message : messages) append<int64_t>(own, message);
  RECMILL_ASSIGN_OR_RETURN(const Received received, exchange(Call::counts, std::move(messages)));
  const auto tables = static_cast<size_t>(homes_.tables().count());
  lookahead::RowCounts rows(tables), copied(tables);
  int64_t of_all = 0;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const auto numbers = numbers_of(received.from(rank).subspan(sizeof(Call)));
    if (numbers.size() != own.size())
      return Status::Failed(communicator_.name(rank) + " counts rows of another model");
    of_all += numbers[0];
    batch_bytes = std::max(batch_bytes, numbers[1]);
    options_.memory = std::min(options_.memory, numbers[2]);
    for (size_t k = 0; k < tables; ++k) {
      rows[k] += numbers[3 + k];
      copied[k] += numbers[3 + tables + k];
    }
  }
  if (!sizer_) sizer_.emplace(homes_.tables(), slot_bytes_, options_);
  sizer_->see(of_all, std::move(rows), std::move(copied), batch_bytes);
  return {};
}

/// False: more steps have to be seen first.
Result<bool> ShardedStepPlanner::choose() {
  if (!sizer_ || !sizer_->is_full(ended_)) return false;
  RECMILL_ASSIGN_OR_RETURN(CacheSize size, sizer_->choose());
  decider_.choose(size);
  size_ = std::make_shared<const CacheSize>(std::move(size));
  return true;
}

void ShardedStepPlanner::go_on() {
  if (std::exchange(told_end_, false)) decider_.go_on();
  ended_ = false;
}

Result<bool> ShardedStepPlanner::plan(StepPlan& plan) {
  if (size_ == nullptr) {
    RECMILL_ASSIGN_OR_RETURN(const bool chosen, choose());
    if (!chosen) return false;
  }
  if (ended_ && !std::exchange(told_end_, true)) decider_.end();
  if (!decider_.ready()) return false;
  RECMILL_ASSIGN_OR_RETURN(RankStep step, decide());
  plan.of_rank = std::make_shared<const RankStep>(std::move(step));
  plan.cache = size_;
  return true;
}

/// What this rank decides goes to all. Slots that are too few at one are so everywhere.
Result<RankStep> ShardedStepPlanner::decide() {
  std::vector<Message> messages(static_cast<size_t>(communicator_.ranks()));
  const auto decided = decider_.next();
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    messages[rank].push_back(decided.ok() ? kMade : kFailed);
    if (decided.ok()) {
      lookahead::append_part((*decided)[rank], static_cast<int32_t>(rank), messages[rank]);
    } else {
      const int k = decider_.failed_slot_table();
      const Status why =
          sizer_->too_few(decided.status(), decider_.slots_asked() * communicator_.ranks(), k);
      append<char>(why.message(), messages[rank]);
    }
  }
  RECMILL_ASSIGN_OR_RETURN(const Received received, exchange(Call::parts, std::move(messages)));
  std::vector<RankStep> parts;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const auto message = received.from(rank).subspan(sizeof(Call));
    if (message.empty())
      return Status::Failed("a plan of " + communicator_.name(rank) + " is empty");
    const auto rest = message.subspan(1);
    if (message[0] == kFailed)
      return Status::BadRequest({reinterpret_cast<const char*>(rest.data()), rest.size()});
    RECMILL_ASSIGN_OR_RETURN(parts.emplace_back(),
                             lookahead::read_part(rest, communicator_.rank()));
  }
  return lookahead::merged(parts);
}

}  // namespace recmill::train
