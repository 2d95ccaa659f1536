// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_world.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "comm/message_communicator.h"
#include "comm/mpi/mpi_link.h"

namespace recmill {
namespace {

/// After a failure: those that have heard of it leave in less.
constexpr double kLeaveSeconds = 5.0;

constexpr const char* kSharedFolder = "/dev/shm";
/// Bytes that the MPI library needs there. It maps memory without having taken it, Open MPI 4 MiB a
/// process, and a process that stores where none is left dies of a signal.
constexpr size_t kMessageRoom = size_t{32} << 20;

/// Bytes that are free in /dev/shm; 0 where there is none.
size_t shared_room() {
  struct statvfs found {};
  if (statvfs(kSharedFolder, &found) != 0) return 0;
  if (found.f_blocks == 0) return std::numeric_limits<size_t>::max();  // no limit was set
  return static_cast<size_t>(found.f_bavail) * found.f_frsize;
}

Status no_room(size_t room) {
  const auto mebi = [](size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return Status::Failed(
      fmt::format("{} has {:.1f} MiB free; processes of one host need {:.0f} MiB there for "
                  "messages between them",
                  kSharedFolder, mebi(room), mebi(kMessageRoom)));
}

/// What MPI libraries do badly by default; who has set them otherwise keeps that. Over TCP,
/// messages that are written by the receiver's leave (Open MPI's "put") use a link in one direction
/// at a time. Where /dev/shm has no room, Open MPI tells of that at length and goes on by other
/// ways, and MPICH's UCX ends the process; we have both do without it, say so in a line, and end.
void set_defaults(bool has_room) {
  const auto prefer = [](const char* name, const char* value) { setenv(name, value, 0); };
  prefer("OMPI_MCA_btl_tcp_flags", "send,inplace");
  if (has_room) return;
  prefer("OMPI_MCA_btl", "^vader");
  prefer("UCX_TLS", "tcp,self");
}

/// Ends this process unless it has left before by itself.
void end_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::duration<double>(kLeaveSeconds));
    _exit(1);
  }).detach();
}

Result<std::vector<std::string>> names_of_hosts(int ranks) {
  std::vector<char> own(MPI_MAX_PROCESSOR_NAME), all(own.size() * ranks);
  int length = 0;
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Get_processor_name(own.data(), &length), "MPI_Get_processor_name"));
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Allgather(own.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(),
                               MPI_MAX_PROCESSOR_NAME, MPI_CHAR, MPI_COMM_WORLD),
                 "MPI_Allgather"));
  std::vector<std::string> names;
  names.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) names.emplace_back(all.data() + own.size() * rank);
  return names;
}

}  // namespace

Result<std::unique_ptr<MpiWorld>> MpiWorld::start(double limit_seconds) {
  int initialised = 0, provided = 0, ranks = 0;
  MPI_Initialized(&initialised);
  if (initialised) return Status::Failed("MPI was initialised before");
  const size_t room = shared_room();
  set_defaults(room >= kMessageRoom);
  RECMILL_RETURN_IF_ERROR(mpi_status(
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread"));
  std::unique_ptr<MpiWorld> world(new MpiWorld);
  if (provided < MPI_THREAD_MULTIPLE)
    return Status::Failed("this MPI library does not let several threads call it");
  world->limit_seconds_ = limit_seconds;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Comm_rank(MPI_COMM_WORLD, &world->rank_), "MPI_Comm_rank"));
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size"));
  RECMILL_ASSIGN_OR_RETURN(world->hosts_, names_of_hosts(ranks));
  RECMILL_ASSIGN_OR_RETURN(world->all_, world->make(ranks));
  if (world->neighbours() > 1 && room < kMessageRoom) world->unfit_ = no_room(room);
  return world;
}

MpiWorld::~MpiWorld() {
  if (has_failed_ && !all_leave_) MPI_Abort(MPI_COMM_WORLD, 1);
  if (has_failed_) end_soon();  // MPICH may wait for ever for messages that a failure has left
  all_.reset();
  MPI_Finalize();
}

std::string MpiWorld::library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all = text;  // whose length may count its end
  return all.substr(0, all.find('\n'));
}

Result<int> MpiWorld::ranks(int64_t wanted) const {
  if (wanted == 0 || wanted == ranks()) return ranks();
  return Status::BadRequest(
      fmt::format("is {}, but the job has {} process{}, each of which is a rank", wanted, ranks(),
                  ranks() == 1 ? "" : "es"));
}

int MpiWorld::neighbours() const {
  return static_cast<int>(std::ranges::count(hosts_, hosts_[rank_]));
}

Status MpiWorld::run(int ranks, const std::function<Status(Communicator&)>& body) {
  RECMILL_CHECK(ranks == this->ranks(), std::to_string(ranks));
  const Status status = unfit_.ok() ? body(*all_) : unfit_;
  if (status.ok()) return status;
  all_->abort(status);
  return all_->failed_here() ? status.at(all_->name(rank_)) : status;
}

Status MpiWorld::fail(const Status& why) {
  const bool is_new = !all_->has_failed();  // else run() has named the rank
  all_->abort(why);
  has_failed_ = true;
  all_leave_ = meet();
  if (!all_leave_ && all_->failed_here()) teller_ = rank_;
  return is_new && !all_failed_ ? why.at(all_->name(rank_)) : why;
}

// Whether all ranks come here within a while. Then the first that failed of itself tells.
bool MpiWorld::meet() {
  static char own = 0;  // MPI may use them after we gave up
  static std::vector<char> failed;
  own = all_->failed_here() ? 1 : 0;
  failed.resize(hosts_.size());
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Iallgather(&own, 1, MPI_CHAR, failed.data(), 1, MPI_CHAR, MPI_COMM_WORLD, &request) !=
      MPI_SUCCESS)
    return false;
  const Stopwatch watch;
  int come = 0;
  while (!come && watch.seconds() < kLeaveSeconds) {
    if (MPI_Test(&request, &come, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (!come) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!come) return false;
  const auto first = std::ranges::find(failed, 1);
  if (first != failed.end()) teller_ = static_cast<int>(first - failed.begin());
  all_failed_ = std::ranges::count(failed, 1) == std::ssize(failed);
  return true;
}

Result<std::unique_ptr<Communicator>> MpiWorld::communicator(int ranks) const {
  if (ranks < 1 || ranks > this->ranks())
    return Status::BadRequest(
        fmt::format("{} processes were started, and {} are needed", this->ranks(), ranks));
  RECMILL_ASSIGN_OR_RETURN(auto made, make(ranks));
  return std::unique_ptr<Communicator>(std::move(made));
}

// MPI_COMM_NULL on the others.
Result<MPI_Comm> MpiWorld::first(int ranks) const {
  RECMILL_CHECK(ranks >= 1 && ranks <= this->ranks(), std::to_string(ranks));
  MPI_Comm of = MPI_COMM_NULL;
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Comm_split(MPI_COMM_WORLD, rank_ < ranks ? 0 : MPI_UNDEFINED, rank_, &of),
                 "MPI_Comm_split"));
  return of;
}

Result<MpiWorld::AllReduce> MpiWorld::all_reduce(int ranks) const {
  RECMILL_ASSIGN_OR_RETURN(const MPI_Comm of, first(ranks));
  if (of == MPI_COMM_NULL) return AllReduce();
  const std::shared_ptr<MPI_Comm> held(new MPI_Comm(of), [](MPI_Comm* comm) {
    MPI_Comm_free(comm);
    delete comm;
  });
  return AllReduce([held](std::span<const float> own, std::span<float> total) -> Status {
    RECMILL_CHECK(std::in_range<int>(total.size()) && own.size() == total.size());
    return mpi_status(MPI_Allreduce(own.data(), total.data(), static_cast<int>(total.size()),
                                    MPI_FLOAT, MPI_SUM, *held),
                      "MPI_Allreduce");
  });
}

Result<std::unique_ptr<MessageCommunicator>> MpiWorld::make(int ranks) const {
  RECMILL_ASSIGN_OR_RETURN(MPI_Comm of, first(ranks));
  if (of == MPI_COMM_NULL) return std::unique_ptr<MessageCommunicator>();
  std::vector<std::string> names;
  names.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    names.push_back("rank " + std::to_string(rank) + " on " + hosts_[rank]);
  auto link = MpiLink::make(of);
  MPI_Comm_free(&of);
  RECMILL_RETURN_IF_ERROR(link.status());
  return std::make_unique<MessageCommunicator>(*std::move(link), std::move(names), limit_seconds_);
}

}  // namespace recmill
