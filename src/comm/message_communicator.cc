// SPDX-License-Identifier: Apache-2.0
#include "comm/message_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/clock.h"
#include "comm/patience.h"
#include "comm/shared_block.h"
#include "comm/shared_memory.h"

namespace recmill {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <typename T>
std::span<std::byte> writable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

MessageCommunicator::MessageCommunicator(std::unique_ptr<Link> link, std::vector<std::string> names,
                                         double limit_seconds)
    : link_(std::move(link)),
      rank_(link_->rank()),
      names_(std::move(names)),
      limit_seconds_(limit_seconds) {
  RECMILL_CHECK(std::ssize(names_) == link_->ranks(), std::to_string(names_.size()));
}

MessageCommunicator::~MessageCommunicator() {
  RECMILL_CHECK(duplicates_.empty());
  if (original_ == nullptr) return;
  std::lock_guard lock(original_->mutex_);
  original_->duplicates_.erase(this);
}

Result<Received> MessageCommunicator::all_to_all(
    std::span<const std::span<const std::byte>> to_rank) {
  RECMILL_CHECK(static_cast<int>(to_rank.size()) == ranks(), std::to_string(to_rank.size()));
  return gather(Call::all_to_all, to_rank);
}

Result<Received> MessageCommunicator::all_gather(std::span<const std::byte> bytes) {
  return gather(Call::all_gather, std::vector(names_.size(), bytes));
}

// Each rank begins with another one, so that not all send to the same.
Result<Received> MessageCommunicator::gather(Call call,
                                             std::span<const std::span<const std::byte>> to_rank) {
  RECMILL_RETURN_IF_ERROR(failure());
  const CallTimer timer(*this);
  const int count = ranks();
  const uint64_t number = calls_++;
  std::vector<Header> sent(count), announced(count);
  const auto sending = link_->transfers(), headers = link_->transfers(),
             receiving = link_->transfers();
  for (int step = 1; step < count; ++step) {
    const int from = (rank_ + count - step) % count;
    RECMILL_RETURN_IF_ERROR(failed(headers->receive(writable_bytes_of(announced[from]), from)));
  }
  for (int step = 1; step < count; ++step) {
    const int to = (rank_ + step) % count;
    sent[to] = {call, 0, number, to_rank[to].size()};
    RECMILL_RETURN_IF_ERROR(failed(sending->send(bytes_of(sent[to]), to)));
    if (!to_rank[to].empty()) RECMILL_RETURN_IF_ERROR(failed(sending->send(to_rank[to], to)));
    count_sent(to_rank[to].size());
  }
  RECMILL_RETURN_IF_ERROR(wait({headers.get()}, call));
  announced[rank_] = {call, 0, number, to_rank[rank_].size()};
  Received received;
  received.offsets.assign(1, 0);
  for (int from = 0; from < count; ++from) {
    RECMILL_RETURN_IF_ERROR(failed(check(announced[from], {call, 0, number, 0}, names_[from])));
    received.offsets.push_back(received.offsets.back() + announced[from].bytes);
  }
  received.bytes.resize(received.offsets.back());
  const auto piece = [&](int from) {
    return std::span(received.bytes).subspan(received.offsets[from], announced[from].bytes);
  };
  for (int step = 1; step < count; ++step) {
    const int from = (rank_ + count - step) % count;
    if (!piece(from).empty())
      RECMILL_RETURN_IF_ERROR(failed(receiving->receive(piece(from), from)));
    count_received(piece(from).size());
  }
  if (!piece(rank_).empty())
    std::memcpy(piece(rank_).data(), to_rank[rank_].data(), piece(rank_).size());
  RECMILL_RETURN_IF_ERROR(wait({receiving.get(), sending.get()}, call));
  return received;
}

// A binomial tree: who has the bytes sends them to the rank at half the distance, and so on.
Status MessageCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  RECMILL_CHECK(root >= 0 && root < ranks(), std::to_string(root));
  RECMILL_RETURN_IF_ERROR(failure());
  const CallTimer timer(*this);
  const int count = ranks(), place = (rank_ + count - root) % count;
  const Header own{Call::broadcast, root, calls_++, bytes.size()};
  const auto sending = link_->transfers(), receiving = link_->transfers();
  int distance = 1;
  while (distance < count && (place & distance) == 0) distance *= 2;
  if (place != 0) {
    const int from = (place - distance + root) % count;
    Header announced;
    RECMILL_RETURN_IF_ERROR(failed(receiving->receive(writable_bytes_of(announced), from)));
    RECMILL_RETURN_IF_ERROR(wait({receiving.get()}, own.call));
    RECMILL_RETURN_IF_ERROR(failed(check(announced, own, names_[from])));
    if (!bytes.empty()) RECMILL_RETURN_IF_ERROR(failed(receiving->receive(bytes, from)));
    RECMILL_RETURN_IF_ERROR(wait({receiving.get()}, own.call));
    count_received(bytes.size());
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    if (place + distance >= count) continue;
    const int to = (place + distance + root) % count;
    RECMILL_RETURN_IF_ERROR(failed(sending->send(bytes_of(own), to)));
    if (!bytes.empty()) RECMILL_RETURN_IF_ERROR(failed(sending->send(bytes, to)));
    count_sent(bytes.size());
  }
  return wait({sending.get()}, own.call);
}

// Everybody hears from everybody, so that whoever is missing is named.
Status MessageCommunicator::barrier() {
  return gather(Call::barrier, std::vector(names_.size(), std::span<const std::byte>())).status();
}

// Headers go ahead of all messages, and nobody waits for them before the first wait.
class MessageCommunicator::MessageExchange final : public Exchange {
 public:
  MessageExchange(MessageCommunicator& of, size_t bytes)
      : of_(of),
        own_{Call::exchange, 0, of.calls_++, bytes},
        announced_(of.ranks()),
        headers_(of.link_->transfers()) {}

  Status announce() {
    const int count = of_.ranks();
    for (int step = 1; step < count; ++step) {
      const int from = (of_.rank_ + count - step) % count, to = (of_.rank_ + step) % count;
      RECMILL_RETURN_IF_ERROR(
          of_.failed(headers_->receive(writable_bytes_of(announced_[from]), from)));
      RECMILL_RETURN_IF_ERROR(of_.failed(headers_->send(bytes_of(own_), to)));
    }
    return {};
  }
  Status send(std::span<const std::byte> bytes, int to, int group) override {
    RECMILL_CHECK(to != of_.rank_);
    of_.count_sent(bytes.size());
    return of_.failed(transfers(group).send(bytes, to));
  }
  Status receive(std::span<std::byte> bytes, int from, int group) override {
    RECMILL_CHECK(from != of_.rank_);
    of_.count_received(bytes.size());
    return of_.failed(transfers(group).receive(bytes, from));
  }
  Status wait(int group) override {
    RECMILL_RETURN_IF_ERROR(of_.failure());
    const CallTimer timer(of_);
    if (!checked_) RECMILL_RETURN_IF_ERROR(check_headers());
    return of_.wait({&transfers(group)}, Call::exchange);
  }

 private:
  Transfers& transfers(int group) {
    auto& made = groups_[group];
    if (made == nullptr) made = of_.link_->transfers();
    return *made;
  }
  Status check_headers() {
    RECMILL_RETURN_IF_ERROR(of_.wait({headers_.get()}, Call::exchange));
    for (int from = 0; from < of_.ranks(); ++from) {
      if (from == of_.rank_) continue;
      RECMILL_RETURN_IF_ERROR(of_.failed(check(announced_[from], own_, of_.names_[from])));
    }
    checked_ = true;
    return {};
  }

  MessageCommunicator& of_;
  const Header own_;
  std::vector<Header> announced_;
  std::unique_ptr<Transfers> headers_;
  std::map<int, std::unique_ptr<Transfers>> groups_;
  bool checked_ = false;
};

Result<std::unique_ptr<Exchange>> MessageCommunicator::exchange(size_t bytes) {
  RECMILL_RETURN_IF_ERROR(failure());
  auto made = std::make_unique<MessageExchange>(*this, bytes);
  RECMILL_RETURN_IF_ERROR(made->announce());
  return std::unique_ptr<Exchange>(std::move(made));
}

class MessageCommunicator::HostWindow final : public Window {
 public:
  HostWindow(MessageCommunicator& of, SharedMemory memory, size_t bytes)
      : of_(of), memory_(std::move(memory)), block_(memory_.data(), of.ranks(), bytes) {}

  std::span<std::byte> of(int rank) const override { return block_.of(rank); }
  void count(uint64_t sent, uint64_t received) override {
    of_.count_sent(sent);
    of_.count_received(received);
  }
  Status fence(uint64_t what) override {
    RECMILL_RETURN_IF_ERROR(of_.failure());
    const CallTimer timer(of_);
    block_.arrive(of_.rank_, ++fences_, what);
    RECMILL_RETURN_IF_ERROR(of_.wait_until(
        [this]() -> Result<Progress> {
          return block_.have_all_arrived(fences_) ? Progress::all : Progress::none;
        },
        Call::window, [this] { return block_.missing(fences_); }));
    const auto stray = block_.stray(fences_, what);
    if (!stray) return {};
    return of_.failed(Status::Failed(fmt::format("{} is in another call: a fence of {}, here of {}",
                                                 of_.names_[stray->rank], stray->what, what)));
  }

 private:
  MessageCommunicator& of_;
  const SharedMemory memory_;
  const SharedBlock block_;
  uint64_t fences_ = 0;
};

// Rank 0 makes the memory, the others map it, and it is kept when all have it.
Result<std::unique_ptr<Window>> MessageCommunicator::window(size_t bytes) {
  RECMILL_CHECK(shares_memory());
  const size_t size = SharedBlock::size(ranks(), bytes);
  SharedMemory::Handle handle;
  Result<SharedMemory> memory = Status::Failed("rank 0 has none");
  if (rank_ == 0) memory = SharedMemory::make(size, handle);
  RECMILL_RETURN_IF_ERROR(broadcast(writable_bytes_of(handle), 0));
  const bool was_made = handle.process != 0;
  if (rank_ != 0 && was_made) memory = SharedMemory::open(size, handle);
  const bool complains = !memory.ok() && (rank_ == 0 || was_made);
  const std::string complaint = complains ? memory.status().message() : "";
  RECMILL_ASSIGN_OR_RETURN(const Received told, all_gather(std::as_bytes(std::span(complaint))));
  if (complains) return failed(memory.status());
  if (!told.bytes.empty()) return barrier();  // where the rank that complains does not come
  memory->seal();
  return std::unique_ptr<Window>(new HostWindow(*this, *std::move(memory), bytes));
}

Status MessageCommunicator::wait(std::initializer_list<Transfers*> all, Call call) {
  const auto look = [&]() -> Result<Progress> {
    Progress least = Progress::all, most = Progress::none;
    for (Transfers* transfers : all) {
      RECMILL_ASSIGN_OR_RETURN(const Progress progress, transfers->advance());
      least = std::min(least, progress);
      if (progress != Progress::all) most = std::max(most, progress);
    }
    return least == Progress::all ? least : most;
  };
  return wait_until(look, call, [&] {
    std::set<int> missing;
    for (const Transfers* transfers : all) missing.merge(transfers->waited_for());
    return missing;
  });
}

// Looks again and again: more often where looks come late. `missing`: the ranks that it waits for.
Status MessageCommunicator::wait_until(const std::function<Result<Progress>()>& look, Call call,
                                       const std::function<std::set<int>()>& missing) {
  Stopwatch since_progress, since_idle;
  Patience patience(/*beside_work=*/original_ != nullptr);
  while (true) {
    const auto progress = look();
    RECMILL_RETURN_IF_ERROR(failed(progress.status()));
    if (*progress == Progress::all) return {};
    if (*progress != Progress::none) since_progress.lap();
    if (*progress == Progress::idle) since_idle.lap();
    RECMILL_RETURN_IF_ERROR(failure());
    if (since_progress.seconds() > limit_seconds_) break;
    patience.wait(since_idle.seconds());
  }
  std::string names;
  for (const int rank : missing()) names += (names.empty() ? "" : ", ") + names_[rank];
  return failed(Status::Failed(
      fmt::format("{}: no answer in {:g} s from {}", name_of(call), limit_seconds_, names)));
}

// An error of a call is told to all, and is the answer of all later calls.
Status MessageCommunicator::failed(const Status& status) {
  if (!status.ok()) abort(status);
  return status;
}

// Of the rank that this one heard of first.
Status MessageCommunicator::failure() {
  FailureNote note;
  bool hears = false;
  if (!has_failed_) {
    RECMILL_ASSIGN_OR_RETURN(hears, link_->hears(note));
  }
  std::lock_guard lock(mutex_);
  if (hears && failure_.ok()) {
    const std::string text = names_[note.rank] + ": " + note.text;
    failure_ = note.code == static_cast<int>(Status::Code::bad_request) ? Status::BadRequest(text)
                                                                        : Status::Failed(text);
    has_failed_ = true;
  }
  return failure_;
}

void MessageCommunicator::abort(const Status& why) {
  RECMILL_CHECK(!why.ok());
  std::lock_guard lock(mutex_);
  if (!failure_.ok()) return;
  failure_ = why.at(names_[rank_]);
  has_failed_ = failed_here_ = true;
  FailureNote note{.rank = rank_, .code = static_cast<int32_t>(why.code())};
  std::strncpy(note.text, why.message().c_str(), sizeof(note.text) - 1);
  link_->tell(note);
  for (MessageCommunicator* duplicate : duplicates_) duplicate->abort(why);
}

Result<std::unique_ptr<Communicator>> MessageCommunicator::duplicate() {
  RECMILL_RETURN_IF_ERROR(barrier());  // so that making it waits for nobody
  auto link = link_->duplicate();
  RECMILL_RETURN_IF_ERROR(failed(link.status()));
  auto made = std::make_unique<MessageCommunicator>(*std::move(link), names_, limit_seconds_);
  made->original_ = this;
  std::lock_guard lock(mutex_);
  duplicates_.insert(made.get());
  if (!failure_.ok()) return failure_;
  return std::unique_ptr<Communicator>(std::move(made));
}

}  // namespace recmill
