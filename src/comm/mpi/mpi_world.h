// SPDX-License-Identifier: Apache-2.0
// Ranks as processes that an MPI launcher started (mpirun, mpiexec, srun), on one host or on many.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/world.h"

namespace recmill {

class MessageCommunicator;

/// This process among those of its job, each of which is a rank. One a process, for its whole life:
/// MPI is initialised once.
class MpiWorld final : public World {
 public:
  /// Initialises MPI. Collective. `limit_seconds`: the longest wait for other ranks in one call of
  /// a communicator; after it the call fails, naming who is missing, as on all ranks. Fails where
  /// the MPI library does not let several threads call it, and the second time. Where several
  /// processes are on a host whose /dev/shm has no room for their messages, run() fails.
  static Result<std::unique_ptr<MpiWorld>> start(double limit_seconds);
  /// Finalises MPI, which waits for all ranks. After a failure it ends the job for those that do
  /// not come soon.
  ~MpiWorld() override;

  /// The MPI library's name and version: the first line of what it says of itself.
  static std::string library();

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(hosts_.size()); }
  /// [ranks], the name that each host gives itself.
  const std::vector<std::string>& hosts() const { return hosts_; }

  /// One in each process.
  Result<int> ranks(int64_t wanted) const override;
  int neighbours() const override;
  bool is_here(int rank) const override { return hosts_[rank] == hosts_[rank_]; }
  bool has_first_rank() const override { return rank_ == 0; }
  bool tells() const override { return teller_ == rank_; }
  /// `ranks` must be that of the world.
  Status run(int ranks, const std::function<Status(Communicator&)>& body) override;
  Status fail(const Status& why) override;

  Result<std::unique_ptr<Communicator>> communicator(int ranks) const override;
  using AllReduce = std::function<Status(std::span<const float> own, std::span<float> total)>;
  /// MPI_Allreduce over the first `ranks` processes: a sum in whatever order, which benchmarks
  /// compare with. None on the other processes. Collective over all.
  Result<AllReduce> all_reduce(int ranks) const;

 private:
  MpiWorld() = default;
  Result<std::unique_ptr<MessageCommunicator>> make(int ranks) const;
  Result<MPI_Comm> first(int ranks) const;
  bool meet();

  int rank_ = 0;
  double limit_seconds_ = 0.0;
  std::vector<std::string> hosts_;
  std::unique_ptr<MessageCommunicator> all_;
  Status unfit_;  // why no rank can run here
  int teller_ = 0;
  bool has_failed_ = false, all_leave_ = false, all_failed_ = false;
};

}  // namespace recmill
