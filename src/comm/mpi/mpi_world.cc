// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_world.h"

#include <mpi.h>

#include <cstdlib>

#include "comm/mpi/mpi_communicator.h"

namespace recmill {
namespace {

/// What Open MPI's own defaults do badly over TCP; who has set them otherwise keeps that. Messages
/// written by the receiver's leave (its "put") use a link in one direction at a time.
void prefer_both_directions() {
  setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", /*overwrite=*/0);
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
  prefer_both_directions();
  int provided = 0, ranks = 0;
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
  return world;
}

MpiWorld::~MpiWorld() {
  MPI_Finalize();
}

Result<std::unique_ptr<Communicator>> MpiWorld::communicator(int ranks) const {
  RECMILL_CHECK(ranks >= 1 && ranks <= this->ranks(), std::to_string(ranks));
  MPI_Comm of = MPI_COMM_NULL;
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Comm_split(MPI_COMM_WORLD, rank_ < ranks ? 0 : MPI_UNDEFINED, rank_, &of),
                 "MPI_Comm_split"));
  if (of == MPI_COMM_NULL) return std::unique_ptr<Communicator>();
  std::vector<std::string> names;
  names.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    names.push_back("rank " + std::to_string(rank) + " on " + hosts_[rank]);
  auto made = MpiCommunicator::make(of, std::move(names), limit_seconds_);
  MPI_Comm_free(&of);
  RECMILL_RETURN_IF_ERROR(made.status());
  return std::unique_ptr<Communicator>(*std::move(made));
}

}  // namespace recmill
