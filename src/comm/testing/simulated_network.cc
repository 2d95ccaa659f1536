// SPDX-License-Identifier: Apache-2.0
#include "comm/testing/simulated_network.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"

namespace recmill {
namespace {

constexpr size_t kLargestPiece = 40'000, kLargestBuffered = 5'000;
constexpr uint64_t kMostLooksLate = 8;  // of what one rank tells of a failure

struct Piece {
  size_t begin = 0, end = 0;
};

/// Made by the end that comes first.
struct Message {
  int from = 0, to = 0;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::vector<std::byte> buffered;  // where it has left its sender's memory
  bool sent = false, awaited = false, given_up = false;
  size_t bytes = 0;
  std::vector<Piece> left;
  bool is_under_way() const { return sent && awaited && !given_up; }
  bool has_arrived() const { return sent && awaited && left.empty(); }
};

struct Told {
  FailureNote note;
  uint64_t looks_late = 0;
};

}  // namespace

struct SimulatedNetwork::State {
  State(int count, uint64_t seed, bool shares)
      : ranks(count), shares_memory(shares), random(seed, Purpose::test), told(count) {}

  const int ranks;
  const bool shares_memory;
  const Random random;
  std::mutex mutex;
  // Guarded by mutex:
  uint64_t draws = 0;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> sends, receives;  // unmatched
  std::vector<std::shared_ptr<Message>> under_way;
  std::vector<std::deque<Told>> told;
  std::set<int> cut;
  std::vector<std::shared_ptr<State>> duplicates;  // in order of duplicate() on each rank
  std::vector<size_t> duplicated = std::vector<size_t>(ranks);

  uint64_t draw(uint64_t below) { return random.below(below, draws++); }

  std::shared_ptr<Message> send(std::span<const std::byte> bytes, int from, int to) {
    auto message = take(receives[{from, to}], sends[{from, to}]);
    message->from = from;
    message->to = to;
    message->sent = true;
    message->source = bytes.data();
    message->bytes = bytes.size();
    if (bytes.size() <= kLargestBuffered && draw(2) == 0) {
      message->buffered.assign(bytes.begin(), bytes.end());
      message->source = message->buffered.data();
    }
    cut_up(*message);
    return message;
  }

  std::shared_ptr<Message> receive(std::span<std::byte> bytes, int from, int to) {
    auto message = take(sends[{from, to}], receives[{from, to}]);
    message->from = from;
    message->to = to;
    message->awaited = true;
    message->target = bytes.data();
    return message;
  }

  // That of the other end, or a new one for it.
  std::shared_ptr<Message> take(std::deque<std::shared_ptr<Message>>& others,
                                std::deque<std::shared_ptr<Message>>& own) {
    std::shared_ptr<Message> message;
    if (others.empty()) {
      own.push_back(std::make_shared<Message>());
      return own.back();
    }
    message = others.front();
    others.pop_front();
    under_way.push_back(message);
    return message;
  }

  void cut_up(Message& message) {
    for (size_t at = 0; at < message.bytes;) {
      const size_t end = std::min(message.bytes, at + 1 + draw(kLargestPiece));
      message.left.push_back({at, end});
      at = end;
    }
    for (size_t i = message.left.size(); i > 1; --i)
      std::swap(message.left[i - 1], message.left[draw(i)]);
  }

  // Some pieces of some messages.
  void move() {
    for (const auto& message : under_way) {
      if (!message->is_under_way() || cut.contains(message->from) || cut.contains(message->to))
        continue;
      for (uint64_t count = draw(4); count > 0 && !message->left.empty(); --count) {
        const Piece piece = message->left.back();
        message->left.pop_back();
        std::memcpy(message->target + piece.begin, message->source + piece.begin,
                    piece.end - piece.begin);
      }
    }
    std::erase_if(under_way,
                  [](const auto& message) { return message->given_up || message->has_arrived(); });
  }
};

namespace {

class SimulatedTransfers final : public Transfers {
 public:
  SimulatedTransfers(std::shared_ptr<SimulatedNetwork::State> state, int rank)
      : state_(std::move(state)), rank_(rank) {}
  ~SimulatedTransfers() override {
    std::lock_guard lock(state_->mutex);
    for (const auto& message : messages_) {
      // What has left this rank's memory arrives.
      if (message->from != rank_ || message->buffered.empty()) message->given_up = true;
    }
  }

  Status send(std::span<const std::byte> bytes, int to) override {
    std::lock_guard lock(state_->mutex);
    messages_.push_back(state_->send(bytes, rank_, to));
    return {};
  }
  Status receive(std::span<std::byte> bytes, int from) override {
    std::lock_guard lock(state_->mutex);
    messages_.push_back(state_->receive(bytes, from, rank_));
    return {};
  }
  Result<Progress> advance() override {
    std::lock_guard lock(state_->mutex);
    state_->move();
    const size_t ended =
        std::erase_if(messages_, [this](const auto& message) { return is_done(*message); });
    if (messages_.empty()) return Progress::all;
    return ended > 0 ? Progress::some : Progress::none;
  }
  std::set<int> waited_for() const override {
    std::set<int> ranks;
    for (const auto& message : messages_)
      ranks.insert(message->from == rank_ ? message->to : message->from);
    return ranks;
  }

 private:
  bool is_done(const Message& message) const {
    return message.has_arrived() || (message.from == rank_ && !message.buffered.empty());
  }

  const std::shared_ptr<SimulatedNetwork::State> state_;
  const int rank_;
  std::vector<std::shared_ptr<Message>> messages_;
};

class SimulatedLink final : public Link {
 public:
  SimulatedLink(std::shared_ptr<SimulatedNetwork::State> state, int rank)
      : state_(std::move(state)), rank_(rank) {}

  int rank() const override { return rank_; }
  int ranks() const override { return state_->ranks; }
  std::unique_ptr<Transfers> transfers() override {
    return std::make_unique<SimulatedTransfers>(state_, rank_);
  }
  void tell(const FailureNote& note) override {
    std::lock_guard lock(state_->mutex);
    if (state_->cut.contains(rank_)) return;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == rank_) continue;
      state_->told[rank].push_back({note, state_->draw(kMostLooksLate)});
    }
  }
  Result<bool> hears(FailureNote& note) override {
    std::lock_guard lock(state_->mutex);
    auto& told = state_->told[rank_];
    if (told.empty() || state_->cut.contains(rank_)) return false;
    if (told.front().looks_late-- > 0) return false;
    note = told.front().note;
    told.pop_front();
    return true;
  }
  bool shares_memory() const override { return state_->shares_memory; }
  Result<std::unique_ptr<Link>> duplicate() override {
    std::lock_guard lock(state_->mutex);
    const size_t which = state_->duplicated[rank_]++;
    if (which == state_->duplicates.size()) {
      state_->duplicates.push_back(std::make_shared<SimulatedNetwork::State>(
          ranks(), state_->draw(uint64_t{1} << 30), shares_memory()));
    }
    return std::unique_ptr<Link>(new SimulatedLink(state_->duplicates[which], rank_));
  }

 private:
  const std::shared_ptr<SimulatedNetwork::State> state_;
  const int rank_;
};

}  // namespace

SimulatedNetwork::SimulatedNetwork(int ranks, uint64_t seed, bool shares_memory)
    : state_(std::make_shared<State>(ranks, seed, shares_memory)) {}

std::unique_ptr<Link> SimulatedNetwork::link(int rank) const {
  return std::make_unique<SimulatedLink>(state_, rank);
}

void SimulatedNetwork::cut(int rank) const {
  std::lock_guard lock(state_->mutex);
  state_->cut.insert(rank);
}

}  // namespace recmill
