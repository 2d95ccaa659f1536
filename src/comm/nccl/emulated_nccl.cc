// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/emulated_nccl.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/threads.h"
#include "device/gpu/emulated_driver.h"

namespace recmill {
namespace {

/// The messages of one group, as one rank gives them.
struct Job {
  struct Message {
    bool is_sent = false;
    std::byte* data = nullptr;  // of what is sent it is only read
    size_t bytes = 0;
    int peer = 0;
  };
  std::vector<Message> messages;
  std::atomic<bool> has_ended{false};
};

/// One rank's end of a communicator. Its thread moves what a GPU would.
class EmulatedComm {
 public:
  explicit EmulatedComm(std::unique_ptr<Communicator> ranks)
      : ranks_(std::move(ranks)), thread_([this] { work(); }) {}
  ~EmulatedComm() { end(); }
  EmulatedComm(const EmulatedComm&) = delete;
  EmulatedComm& operator=(const EmulatedComm&) = delete;

  int rank() const { return ranks_->rank(); }
  int ranks() const { return ranks_->ranks(); }
  nccl::Result state() const { return state_; }

  void begin(std::shared_ptr<Job> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }
  /// What has begun ends, and nothing is moved any more.
  void abort() {
    ranks_->abort(Status::Failed("was aborted"));
    end();
  }
  /// Once what has begun has ended.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work() {
    auto exchange = ranks_->exchange(0);  // all ranks have come
    state_ = exchange.ok() ? 0 : nccl::kRemoteError;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !jobs_.empty() || ends_; });
      if (jobs_.empty()) return;
      const std::shared_ptr<Job> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      if (state_ == 0) state_ = move(**exchange, *job);
      job->has_ended = true;
      lock.lock();
    }
  }

  // Sizes go ahead, so that those that differ are found out.
  nccl::Result move(Exchange& exchange, const Job& job) {
    std::vector<uint64_t> sizes;
    for (const Job::Message& message : job.messages) sizes.push_back(message.bytes);
    const auto sizes_of = [&](size_t i) {
      return std::as_writable_bytes(std::span(sizes))
          .subspan(i * sizeof(uint64_t), sizeof(uint64_t));
    };
    if (!post(exchange, job, sizes_of).ok()) return nccl::kRemoteError;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == job.messages[i].bytes) continue;
      ranks_->abort(Status::Failed("sizes differ"));
      return nccl::kInvalidUsage;
    }
    const auto data_of = [&](size_t i) {
      return std::span(job.messages[i].data, job.messages[i].bytes);
    };
    return post(exchange, job, data_of).ok() ? 0 : nccl::kRemoteError;
  }

  template <typename BytesOf>
  static Status post(Exchange& exchange, const Job& job, const BytesOf& bytes_of) {
    for (size_t i = 0; i < job.messages.size(); ++i) {
      const Job::Message& message = job.messages[i];
      RECMILL_RETURN_IF_ERROR(message.is_sent ? exchange.send(bytes_of(i), message.peer, 0)
                                              : exchange.receive(bytes_of(i), message.peer, 0));
    }
    return exchange.wait(0);
  }

  const std::unique_ptr<Communicator> ranks_;
  std::atomic<nccl::Result> state_{nccl::kInProgress};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;  // guarded by mutex_
  bool ends_ = false;                      // guarded by mutex_
  std::thread thread_;
};

using Handle = std::shared_ptr<EmulatedComm>;
Handle& of(nccl::Comm comm) {
  return *static_cast<Handle*>(comm);
}

/// Groups of ranks that are being made.
class Rendezvous {
 public:
  nccl::UniqueId next() {
    const std::lock_guard lock(mutex_);
    nccl::UniqueId id;
    std::memcpy(id.bytes, &++ids_, sizeof ids_);
    return id;
  }
  /// Null where ranks disagree.
  std::unique_ptr<Communicator> come(const nccl::UniqueId& id, int ranks, int rank) {
    const std::lock_guard lock(mutex_);
    auto& group = groups_.try_emplace(std::string(id.bytes, sizeof id.bytes), ranks).first->second;
    if (group.ranks != ranks || rank < 0 || rank >= ranks) return nullptr;
    auto communicator = group.threads.communicator(rank);
    if (++group.come == ranks) groups_.erase(std::string(id.bytes, sizeof id.bytes));
    return communicator;
  }

 private:
  struct Group {
    explicit Group(int count) : ranks(count), threads(count) {}
    int ranks, come = 0;
    ThreadsGroup threads;
  };
  std::mutex mutex_;
  uint64_t ids_ = 0;                     // guarded by mutex_
  std::map<std::string, Group> groups_;  // guarded by mutex_
};
Rendezvous& rendezvous() {
  static Rendezvous made;
  return made;
}

/// What this thread has called since its outermost group_start().
struct Group {
  struct Part {
    Handle comm;
    nccl::Stream stream = nullptr;
    std::shared_ptr<Job> job = std::make_shared<Job>();
  };
  int depth = 0;
  std::vector<Part> parts;  // of each communicator
};
thread_local Group group;

nccl::Result group_start() {
  ++group.depth;
  return 0;
}

nccl::Result group_end() {
  if (group.depth == 0) return nccl::kInvalidUsage;
  if (--group.depth > 0) return 0;
  for (Group::Part& part : std::exchange(group.parts, {})) {
    const auto moved = [comm = part.comm, job = part.job, begun = false]() mutable -> Result<bool> {
      if (!std::exchange(begun, true)) comm->begin(job);
      return job->has_ended.load();
    };
    if (!enqueue_on_emulated(part.stream, moved).ok()) return nccl::kInvalidUsage;
  }
  return 0;
}

/// Adds messages to the group, or makes them one.
nccl::Result add(nccl::Comm comm, nccl::Stream stream, std::vector<Job::Message> messages) {
  group_start();
  auto& parts = group.parts;
  auto part = parts.begin();
  while (part != parts.end() && part->comm != of(comm)) ++part;
  if (part == parts.end()) part = parts.insert(part, {of(comm), stream});
  const bool fits = part->stream == stream;
  if (fits) part->job->messages.insert(part->job->messages.end(), messages.begin(), messages.end());
  const nccl::Result ended = group_end();
  return fits ? ended : nccl::kInvalidUsage;
}

bool is_other(nccl::Comm comm, int peer) {
  return peer >= 0 && peer < of(comm)->ranks() && peer != of(comm)->rank();
}

Job::Message sent(const void* data, size_t bytes, int to) {
  return {true, static_cast<std::byte*>(const_cast<void*>(data)), bytes, to};
}

nccl::Result send(const void* data, size_t bytes, int, int to, nccl::Comm comm,
                  nccl::Stream stream) {
  if (!is_other(comm, to)) return nccl::kInvalidArgument;
  return add(comm, stream, {sent(data, bytes, to)});
}

nccl::Result receive(void* data, size_t bytes, int, int from, nccl::Comm comm,
                     nccl::Stream stream) {
  if (!is_other(comm, from)) return nccl::kInvalidArgument;
  return add(comm, stream, {{false, static_cast<std::byte*>(data), bytes, from}});
}

nccl::Result broadcast(const void* from, void* to, size_t bytes, int, int root, nccl::Comm comm,
                       nccl::Stream stream) {
  const int rank = of(comm)->rank();
  if (rank != root) return receive(to, bytes, nccl::kBytes, root, comm, stream);
  if (from != to) return nccl::kInvalidArgument;  // the root's own copy is left to others
  std::vector<Job::Message> messages;
  for (int peer = 0; peer < of(comm)->ranks(); ++peer)
    if (peer != rank) messages.push_back(sent(from, bytes, peer));
  return add(comm, stream, std::move(messages));
}

nccl::Result init(nccl::Comm* comm, int ranks, nccl::UniqueId id, int rank, nccl::Config*) {
  if (ranks < 1) return nccl::kInvalidArgument;
  auto come = rendezvous().come(id, ranks, rank);
  if (come == nullptr) return nccl::kInvalidArgument;
  *comm = new Handle(std::make_shared<EmulatedComm>(std::move(come)));
  return nccl::kInProgress;
}

const char* error_string(nccl::Result error) {
  switch (error) {
    case nccl::kInvalidArgument:
      return "invalid argument";
    case nccl::kInvalidUsage:
      return "invalid usage";
    case nccl::kRemoteError:
      return "another rank has failed";
    default:
      return "unknown error";
  }
}

}  // namespace

nccl::Api emulated_nccl() {
  nccl::Api api;
  api.version = [](int* version) {
    *version = 21400;
    return 0;
  };
  api.error_string = &error_string;
  api.unique_id = [](nccl::UniqueId* id) {
    *id = rendezvous().next();
    return 0;
  };
  api.init = &init;
  api.finalize = [](nccl::Comm) { return 0; };
  api.destroy = [](nccl::Comm comm) {
    of(comm)->end();
    delete &of(comm);
    return 0;
  };
  api.abort = [](nccl::Comm comm) {
    of(comm)->abort();
    delete &of(comm);
    return 0;
  };
  api.async_error = [](nccl::Comm comm, nccl::Result* state) {
    *state = of(comm)->state();
    return 0;
  };
  api.group_start = &group_start;
  api.group_end = &group_end;
  api.send = &send;
  api.receive = &receive;
  api.broadcast = &broadcast;
  return api;
}

}  // namespace recmill
