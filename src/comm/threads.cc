// SPDX-License-Identifier: Apache-2.0
#include "comm/threads.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/patience.h"
#include "comm/shared_block.h"
#include "device/buffer.h"

namespace recmill {
namespace {

enum class Call { all_to_all, all_gather, broadcast, barrier, exchange, window, duplicate };

/// One end of a message that waits for the other. `pending` counts what its group still waits for.
struct Message {
  std::byte* data = nullptr;  // of a send it is only read
  size_t bytes = 0;
  int64_t* pending = nullptr;
};
using Messages = std::map<std::pair<int, int>, std::deque<Message>>;  // by [from, to]

// What one rank brings to a call. Read by the other ranks between the two waits of a round.
struct Post {
  Call call = Call::barrier;
  int root = 0;
  std::span<const std::span<const std::byte>> to_rank = {};  // all_to_all
  std::span<const std::byte> bytes = {};                     // all_gather, broadcast
  size_t size = 0;                                           // exchange
  std::shared_ptr<Result<Buffer>> memory = nullptr;          // window, of rank 0
  std::shared_ptr<ThreadsGroup::State> state = nullptr;      // duplicate, of rank 0
};

}  // namespace

struct ThreadsGroup::State {
  State(int count, bool duplicate) : ranks(count), is_duplicate(duplicate), posts(count) {}

  const int ranks;
  const bool is_duplicate;
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex; `posts` are read without it while a round is open.
  std::vector<Post> posts;
  int arrived = 0;      // ranks that wait for the round to open
  int inside = 0;       // ranks that still read the posts of the open round
  uint64_t opened = 0;  // rounds
  uint64_t closed = 0;
  Status failure;            // of the rank that aborted first
  Messages sends, receives;  // between two ranks there are sends alone, or receives alone
  std::vector<std::weak_ptr<State>> duplicates;
  std::atomic<bool> has_failed{false};  // beside `failure`

  // Enters a round with `post`, calls take() when every rank has entered, and returns when every
  // rank has taken: only then may the memory behind a post go away. An open round needs nobody's
  // help to close, so that abort() has to interrupt the first wait alone.
  template <typename Take>
  Status round(int rank, const Post& post, const Take& take) {
    std::unique_lock lock(mutex);
    if (!failure.ok()) return failure;
    const uint64_t mine = opened + 1;
    posts[rank] = post;
    if (++arrived == ranks) {
      arrived = 0;
      inside = ranks;
      opened = mine;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return opened == mine || !failure.ok(); });
    if (opened != mine) return failure;
    lock.unlock();
    for (const Post& other : posts) {
      RECMILL_CHECK(other.call == post.call && other.root == post.root, "ranks disagree");
    }
    take();
    lock.lock();
    if (--inside == 0) {
      closed = mine;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return closed == mine; });
    return {};
  }

  void fail(const Status& why) {
    std::lock_guard lock(mutex);
    if (!failure.ok()) return;
    failure = why;
    has_failed = true;
    changed.notify_all();
    for (const auto& duplicate : duplicates) {
      if (const auto state = duplicate.lock()) state->fail(why);
    }
  }
};

namespace {

class ThreadsCommunicator final : public Communicator {
 public:
  ThreadsCommunicator(std::shared_ptr<ThreadsGroup::State> state, int rank)
      : state_(std::move(state)), rank_(rank) {}

  int rank() const override { return rank_; }
  int ranks() const override { return state_->ranks; }

  Result<Received> all_to_all(std::span<const std::span<const std::byte>> to_rank) override {
    RECMILL_CHECK(static_cast<int>(to_rank.size()) == ranks(), std::to_string(to_rank.size()));
    return gather({.call = Call::all_to_all, .to_rank = to_rank},
                  [this](const Post& post) { return post.to_rank[rank_]; });
  }

  Result<Received> all_gather(std::span<const std::byte> bytes) override {
    return gather({.call = Call::all_gather, .bytes = bytes},
                  [](const Post& post) { return post.bytes; });
  }

  Status broadcast(std::span<std::byte> bytes, int root) override {
    RECMILL_CHECK(root >= 0 && root < ranks(), std::to_string(root));
    const CallTimer timer(*this);
    if (rank_ == root) {
      count_sent(bytes.size() * (ranks() - 1));
    } else {
      count_received(bytes.size());
    }
    return state_->round(rank_, {.call = Call::broadcast, .root = root, .bytes = bytes}, [&] {
      const auto source = state_->posts[root].bytes;
      RECMILL_CHECK(source.size() == bytes.size(),
                    std::to_string(source.size()) + " and " + std::to_string(bytes.size()));
      if (rank_ != root && !bytes.empty()) std::memcpy(bytes.data(), source.data(), bytes.size());
    });
  }

  Status barrier() override {
    const CallTimer timer(*this);
    return state_->round(rank_, {.call = Call::barrier}, [] {});
  }

  Result<std::unique_ptr<Exchange>> exchange(size_t bytes) override;
  bool shares_memory() const override { return true; }
  Result<std::unique_ptr<Window>> window(size_t bytes) override;
  Result<std::unique_ptr<Communicator>> duplicate() override;

  void abort(const Status& why) override {
    RECMILL_CHECK(!why.ok());
    state_->fail(why.at(name(rank_)));
  }
  Status failure() override {
    std::lock_guard lock(state_->mutex);
    return state_->failure;
  }

 private:
  class CopyingExchange;
  class ThreadsWindow;

  Status disagree(int with, const char* call, size_t theirs, size_t ours) const {
    return Status::Failed(name(with) + " is in another call: " + call + " of " +
                          std::to_string(theirs) + ", here of " + std::to_string(ours));
  }

  template <typename Piece>
  Result<Received> gather(const Post& post, const Piece& piece) {
    const CallTimer timer(*this);
    Received received;
    RECMILL_RETURN_IF_ERROR(state_->round(rank_, post, [&] {
      received.offsets.assign(1, 0);
      for (const Post& from : state_->posts) {
        received.offsets.push_back(received.offsets.back() + piece(from).size());
      }
      received.bytes.reserve(received.offsets.back());
      for (const Post& from : state_->posts) {
        received.bytes.insert(received.bytes.end(), piece(from).begin(), piece(from).end());
      }
    }));
    for (int other = 0; other < ranks(); ++other) {
      if (other == rank_) continue;
      count_sent(post.call == Call::all_to_all ? post.to_rank[other].size() : post.bytes.size());
      count_received(received.from(other).size());
    }
    return received;
  }

  const std::shared_ptr<ThreadsGroup::State> state_;
  const int rank_;
};

// Who comes second to a message copies it.
class ThreadsCommunicator::CopyingExchange final : public Exchange {
 public:
  explicit CopyingExchange(ThreadsCommunicator& of) : of_(of), state_(*of.state_) {}
  ~CopyingExchange() override {
    std::lock_guard lock(state_.mutex);
    for (int other = 0; other < state_.ranks; ++other) {
      state_.sends.erase({of_.rank_, other});
      state_.receives.erase({other, of_.rank_});
    }
  }

  Status send(std::span<const std::byte> bytes, int to, int group) override {
    RECMILL_CHECK(to != of_.rank_);
    of_.count_sent(bytes.size());
    const Message message{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return post({of_.rank_, to}, message, group, state_.sends, state_.receives);
  }
  Status receive(std::span<std::byte> bytes, int from, int group) override {
    RECMILL_CHECK(from != of_.rank_);
    of_.count_received(bytes.size());
    return post({from, of_.rank_}, {bytes.data(), bytes.size()}, group, state_.receives,
                state_.sends);
  }
  Status wait(int group) override {
    const CallTimer timer(of_);
    std::unique_lock lock(state_.mutex);
    const int64_t& pending = pending_[group];
    state_.changed.wait(lock, [&] { return pending == 0 || !state_.failure.ok(); });
    return pending == 0 ? Status() : state_.failure;
  }

 private:
  Status post(std::pair<int, int> link, Message message, int group, Messages& own,
              Messages& others) {
    std::lock_guard lock(state_.mutex);
    if (!state_.failure.ok()) return state_.failure;
    message.pending = &pending_[group];
    auto& waiting = others[link];
    if (waiting.empty()) {
      ++*message.pending;
      own[link].push_back(message);
      return {};
    }
    const Message other = waiting.front();
    waiting.pop_front();
    RECMILL_CHECK(other.bytes == message.bytes,
                  std::to_string(other.bytes) + " and " + std::to_string(message.bytes));
    const bool sends = &own == &state_.sends;
    const Message &from = sends ? message : other, &to = sends ? other : message;
    if (from.bytes > 0) std::memcpy(to.data, from.data, from.bytes);
    if (--*other.pending == 0) state_.changed.notify_all();
    return {};
  }

  ThreadsCommunicator& of_;
  ThreadsGroup::State& state_;
  std::map<int, int64_t> pending_;  // by group; guarded by the state's mutex
};

class ThreadsCommunicator::ThreadsWindow final : public Window {
 public:
  ThreadsWindow(ThreadsCommunicator& of, std::shared_ptr<Result<Buffer>> memory, size_t bytes)
      : of_(of),
        memory_(std::move(memory)),
        block_((*memory_)->as<std::byte>().data(), of.ranks(), bytes) {}

  std::span<std::byte> of(int rank) const override { return block_.of(rank); }
  void count(uint64_t sent, uint64_t received) override {
    of_.count_sent(sent);
    of_.count_received(received);
  }
  Status fence(uint64_t what) override {
    const CallTimer timer(of_);
    block_.arrive(of_.rank_, ++fences_, what);
    const Stopwatch watch;
    Patience patience(of_.state_->is_duplicate);
    while (!block_.have_all_arrived(fences_)) {
      if (of_.state_->has_failed) return of_.failure();
      patience.wait(watch.seconds());
    }
    const auto stray = block_.stray(fences_, what);
    return stray ? of_.disagree(stray->rank, "a fence", stray->what, what) : Status();
  }

 private:
  ThreadsCommunicator& of_;
  const std::shared_ptr<Result<Buffer>> memory_;
  const SharedBlock block_;
  uint64_t fences_ = 0;
};

Result<std::unique_ptr<Exchange>> ThreadsCommunicator::exchange(size_t bytes) {
  const CallTimer timer(*this);
  Status sizes;
  RECMILL_RETURN_IF_ERROR(state_->round(rank_, {.call = Call::exchange, .size = bytes}, [&] {
    for (int rank = 0; rank < ranks() && sizes.ok(); ++rank) {
      const size_t other = state_->posts[rank].size;
      if (other != bytes) sizes = disagree(rank, "an exchange", other, bytes);
    }
  }));
  RECMILL_RETURN_IF_ERROR(sizes);
  return std::unique_ptr<Exchange>(new CopyingExchange(*this));
}

Result<std::unique_ptr<Window>> ThreadsCommunicator::window(size_t bytes) {
  std::shared_ptr<Result<Buffer>> memory;
  if (rank_ == 0) {
    memory = std::make_shared<Result<Buffer>>(Buffer::allocate(SharedBlock::size(ranks(), bytes)));
  }
  const Post post{.call = Call::window, .size = bytes, .memory = memory};
  RECMILL_RETURN_IF_ERROR(state_->round(rank_, post, [&] { memory = state_->posts[0].memory; }));
  RECMILL_RETURN_IF_ERROR(memory->status());
  return std::unique_ptr<Window>(new ThreadsWindow(*this, std::move(memory), bytes));
}

Result<std::unique_ptr<Communicator>> ThreadsCommunicator::duplicate() {
  Post post{.call = Call::duplicate};
  if (rank_ == 0) {
    post.state = std::make_shared<ThreadsGroup::State>(ranks(), /*duplicate=*/true);
    std::lock_guard lock(state_->mutex);
    state_->duplicates.push_back(post.state);
  }
  std::shared_ptr<ThreadsGroup::State> made;
  RECMILL_RETURN_IF_ERROR(state_->round(rank_, post, [&] { made = state_->posts[0].state; }));
  return std::unique_ptr<Communicator>(new ThreadsCommunicator(std::move(made), rank_));
}

}  // namespace

ThreadsGroup::ThreadsGroup(int ranks) {
  RECMILL_CHECK(ranks >= 1, std::to_string(ranks));
  state_ = std::make_shared<State>(ranks, /*duplicate=*/false);
}

std::unique_ptr<Communicator> ThreadsGroup::communicator(int rank) const {
  RECMILL_CHECK(rank >= 0 && rank < state_->ranks, std::to_string(rank));
  return std::make_unique<ThreadsCommunicator>(state_, rank);
}

Status run_ranks(int ranks, const std::function<Status(Communicator&)>& body) {
  const ThreadsGroup group(ranks);
  if (ranks == 1) return body(*group.communicator(0));
  std::mutex mutex;
  Status first;  // guarded by mutex
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = group.communicator(rank);
      const Status status = body(*communicator);
      if (status.ok()) return;
      communicator->abort(status);
      std::lock_guard lock(mutex);
      first = communicator->barrier();  // what every call returns now
    });
  }
  for (auto& thread : threads) thread.join();
  return first;
}

}  // namespace recmill
