// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_communicator.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "base/clock.h"

namespace recmill {
namespace {

/// Between two looks at messages: first nothing, then others may have the core, then it sleeps, the
/// longer the longer it has waited, so that a rank which waits takes little from those that
/// compute, and a hundredth more at most than it has to.
class Patience {
 public:
  void wait(double waited_seconds) {
    ++looks_;
    if (looks_ > kYields) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::clamp(waited_seconds / 100, 50e-6, 2e-3)));
    } else if (looks_ > kSpins) {
      sched_yield();
    }
  }

 private:
  static constexpr int64_t kSpins = 32, kYields = 2000;
  int64_t looks_ = 0;
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <typename T>
std::span<std::byte> writable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// Waits for all ranks without a look at failures.
Result<MPI_Comm> duplicate(MPI_Comm of) {
  MPI_Comm made = MPI_COMM_NULL;
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_dup(of, &made), "MPI_Comm_dup"));
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  return made;
}

}  // namespace

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::make(MPI_Comm of,
                                                               std::vector<std::string> names,
                                                               double limit_seconds) {
  std::unique_ptr<MpiCommunicator> made(new MpiCommunicator);
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_rank(of, &made->rank_), "MPI_Comm_rank"));
  RECMILL_ASSIGN_OR_RETURN(made->data_, duplicate(of));
  RECMILL_ASSIGN_OR_RETURN(made->notes_, duplicate(of));
  made->names_ = std::move(names);
  made->limit_seconds_ = limit_seconds;
  RECMILL_RETURN_IF_ERROR(made->listen());
  return made;
}

MpiCommunicator::~MpiCommunicator() {
  if (hearing_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&hearing_);
    MPI_Wait(&hearing_, MPI_STATUS_IGNORE);
  }
  if (has_failed_) return;  // messages may be left, and who would free it with us is gone
  if (data_ != MPI_COMM_NULL) MPI_Comm_free(&data_);
  if (notes_ != MPI_COMM_NULL) MPI_Comm_free(&notes_);
}

Status MpiCommunicator::listen() {
  return mpi_status(
      MPI_Irecv(&heard_, sizeof(heard_), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, notes_, &hearing_),
      "MPI_Irecv");
}

Result<Received> MpiCommunicator::all_to_all(std::span<const std::span<const std::byte>> to_rank) {
  RECMILL_CHECK(static_cast<int>(to_rank.size()) == ranks(), std::to_string(to_rank.size()));
  return exchange(Call::all_to_all, to_rank);
}

Result<Received> MpiCommunicator::all_gather(std::span<const std::byte> bytes) {
  return exchange(Call::all_gather, std::vector(names_.size(), bytes));
}

// Each rank begins with another one, so that not all send to the same.
Result<Received> MpiCommunicator::exchange(Call call,
                                           std::span<const std::span<const std::byte>> to_rank) {
  RECMILL_RETURN_IF_ERROR(failure());
  const CallTimer timer(*this);
  const int count = ranks();
  const uint64_t number = calls_++;
  std::vector<Header> sent(count), announced(count);
  Transfers sending(data_), headers(data_), receiving(data_);
  for (int step = 1; step < count; ++step) {
    const int from = (rank_ + count - step) % count;
    RECMILL_RETURN_IF_ERROR(failed(headers.receive(writable_bytes_of(announced[from]), from)));
  }
  for (int step = 1; step < count; ++step) {
    const int to = (rank_ + step) % count;
    sent[to] = {call, 0, number, to_rank[to].size()};
    RECMILL_RETURN_IF_ERROR(failed(sending.send(bytes_of(sent[to]), to)));
    if (!to_rank[to].empty()) RECMILL_RETURN_IF_ERROR(failed(sending.send(to_rank[to], to)));
    count_sent(to_rank[to].size());
  }
  RECMILL_RETURN_IF_ERROR(wait({&headers}, call));
  announced[rank_] = {call, 0, number, to_rank[rank_].size()};
  Received received;
  received.offsets.assign(1, 0);
  for (int from = 0; from < count; ++from) {
    RECMILL_RETURN_IF_ERROR(failed(check(announced[from], {call, 0, number, 0}, from)));
    received.offsets.push_back(received.offsets.back() + announced[from].bytes);
  }
  received.bytes.resize(received.offsets.back());
  const auto piece = [&](int from) {
    return std::span(received.bytes).subspan(received.offsets[from], announced[from].bytes);
  };
  for (int step = 1; step < count; ++step) {
    const int from = (rank_ + count - step) % count;
    if (!piece(from).empty()) RECMILL_RETURN_IF_ERROR(failed(receiving.receive(piece(from), from)));
    count_received(piece(from).size());
  }
  if (!piece(rank_).empty())
    std::memcpy(piece(rank_).data(), to_rank[rank_].data(), piece(rank_).size());
  RECMILL_RETURN_IF_ERROR(wait({&receiving, &sending}, call));
  return received;
}

// A binomial tree: who has the bytes sends them to the rank at half the distance, and so on.
Status MpiCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  RECMILL_CHECK(root >= 0 && root < ranks(), std::to_string(root));
  RECMILL_RETURN_IF_ERROR(failure());
  const CallTimer timer(*this);
  const int count = ranks(), place = (rank_ + count - root) % count;
  const Header own{Call::broadcast, root, calls_++, bytes.size()};
  Transfers sending(data_), receiving(data_);
  int distance = 1;
  while (distance < count && (place & distance) == 0) distance *= 2;
  if (place != 0) {
    const int from = (place - distance + root) % count;
    Header announced;
    RECMILL_RETURN_IF_ERROR(failed(receiving.receive(writable_bytes_of(announced), from)));
    RECMILL_RETURN_IF_ERROR(wait({&receiving}, own.call));
    RECMILL_RETURN_IF_ERROR(failed(check(announced, own, from)));
    if (!bytes.empty()) RECMILL_RETURN_IF_ERROR(failed(receiving.receive(bytes, from)));
    RECMILL_RETURN_IF_ERROR(wait({&receiving}, own.call));
    count_received(bytes.size());
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    if (place + distance >= count) continue;
    const int to = (place + distance + root) % count;
    RECMILL_RETURN_IF_ERROR(failed(sending.send(bytes_of(own), to)));
    if (!bytes.empty()) RECMILL_RETURN_IF_ERROR(failed(sending.send(bytes, to)));
    count_sent(bytes.size());
  }
  return wait({&sending}, own.call);
}

// Everybody hears from everybody, so that whoever is missing is named.
Status MpiCommunicator::barrier() {
  return exchange(Call::barrier, std::vector(names_.size(), std::span<const std::byte>())).status();
}

const char* MpiCommunicator::name_of(Call call) {
  constexpr const char* kNames[] = {"all-to-all", "all-gather", "broadcast", "barrier"};
  return kNames[static_cast<int>(call)];
}

Status MpiCommunicator::check(const Header& header, const Header& expected, int from) const {
  const bool sized = expected.call == Call::broadcast;
  if (header.call == expected.call && header.number == expected.number &&
      header.root == expected.root && (!sized || header.bytes == expected.bytes))
    return {};
  const auto text = [&](const Header& of) {
    std::string line = fmt::format("{} {}", name_of(of.call), of.number);
    if (of.call == Call::broadcast)
      line += fmt::format(" of {} bytes from rank {}", of.bytes, of.root);
    return line;
  };
  return Status::Failed(fmt::format("{} is in another call: {}, here {}", names_[from],
                                    text(header), text(expected)));
}

Status MpiCommunicator::wait(std::initializer_list<Transfers*> all, Call call) {
  const Stopwatch watch;
  Patience patience;
  while (true) {
    bool done = true;
    for (Transfers* transfers : all) {
      const auto some = transfers->done();
      RECMILL_RETURN_IF_ERROR(failed(some.status()));
      done = done && *some;
    }
    if (done) return {};
    RECMILL_RETURN_IF_ERROR(failure());
    if (watch.seconds() > limit_seconds_) break;
    patience.wait(watch.seconds());
  }
  std::set<int> missing;
  for (const Transfers* transfers : all) missing.merge(transfers->waited_for());
  std::string names;
  for (const int rank : missing) names += (names.empty() ? "" : ", ") + names_[rank];
  return failed(Status::Failed(
      fmt::format("{}: no answer in {:g} s from {}", name_of(call), limit_seconds_, names)));
}

// An error of a call is told to all, and is the answer of all later calls.
Status MpiCommunicator::failed(const Status& status) {
  if (!status.ok()) abort(status);
  return status;
}

// Of the rank that this one heard of first.
Status MpiCommunicator::failure() {
  int heard = 0;
  if (!has_failed_ && hearing_ != MPI_REQUEST_NULL) {
    RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Test(&hearing_, &heard, MPI_STATUS_IGNORE), "MPI_Test"));
  }
  std::lock_guard lock(mutex_);
  if (heard && failure_.ok()) {
    const std::string text = names_[heard_.rank] + ": " + heard_.text;
    failure_ = heard_.code == static_cast<int>(Status::Code::bad_request) ? Status::BadRequest(text)
                                                                          : Status::Failed(text);
    has_failed_ = true;
  }
  return failure_;
}

void MpiCommunicator::abort(const Status& why) {
  RECMILL_CHECK(!why.ok());
  std::lock_guard lock(mutex_);
  if (!failure_.ok()) return;
  failure_ = why.at(names_[rank_]);
  has_failed_ = failed_here_ = true;
  Note& note = *new Note;  // NOLINT: MPI reads it when it likes, after the communicator is gone too
  note.rank = rank_;
  note.code = static_cast<int32_t>(why.code());
  std::strncpy(note.text, why.message().c_str(), sizeof(note.text) - 1);
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    // Who cannot be told finds out by its limit.
    if (MPI_Isend(&note, sizeof(note), MPI_BYTE, rank, 0, notes_, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

}  // namespace recmill
