// SPDX-License-Identifier: Apache-2.0
#include "comm/threads.h"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace recmill {
namespace {

enum class Call { all_to_all, all_gather, broadcast, barrier };

// What one rank brings to a call. Read by the other ranks between the two waits of a round.
struct Post {
  Call call = Call::barrier;
  int root = 0;
  std::span<const std::span<const std::byte>> to_rank = {};  // all_to_all
  std::span<const std::byte> bytes = {};                     // all_gather, broadcast
};

}  // namespace

struct ThreadsGroup::State {
  explicit State(int count) : ranks(count), posts(count) {}

  const int ranks;
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex; `posts` are read without it while a round is open.
  std::vector<Post> posts;
  int arrived = 0;      // ranks that wait for the round to open
  int inside = 0;       // ranks that still read the posts of the open round
  uint64_t opened = 0;  // rounds
  uint64_t closed = 0;
  Status failure;  // of the rank that aborted first

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

  void abort(const Status& why) override {
    RECMILL_CHECK(!why.ok());
    std::lock_guard lock(state_->mutex);
    if (!state_->failure.ok()) return;
    state_->failure = why.at("rank " + std::to_string(rank_));
    state_->changed.notify_all();
  }

 private:
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

}  // namespace

ThreadsGroup::ThreadsGroup(int ranks) {
  RECMILL_CHECK(ranks >= 1, std::to_string(ranks));
  state_ = std::make_shared<State>(ranks);
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
      std::lock_guard lock(mutex);
      if (first.ok()) first = status.at("rank " + std::to_string(rank));
      communicator->abort(status);
    });
  }
  for (auto& thread : threads) thread.join();
  return first;
}

}  // namespace recmill
