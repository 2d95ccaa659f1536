// SPDX-License-Identifier: Apache-2.0
// Ranks as processes that an MPI launcher started (mpirun, mpiexec, srun), on one host or on many.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"

namespace recmill {

/// This process among those of its job. One a process, for its whole life: MPI is initialised once.
class MpiWorld {
 public:
  /// Initialises MPI. Collective. `limit_seconds`: the longest wait for other ranks in one call of
  /// a communicator; after it the call fails, naming who is missing, as on all ranks. Fails where
  /// the MPI library does not let several threads call it.
  static Result<std::unique_ptr<MpiWorld>> start(double limit_seconds);
  /// Finalises MPI, which waits for all ranks.
  ~MpiWorld();

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(hosts_.size()); }
  /// [ranks], the name that each host gives itself.
  const std::vector<std::string>& hosts() const { return hosts_; }

  /// A communicator of the first `ranks` ranks; null on the others. Collective over all of them.
  /// Several may be in use at the same time, each by one thread, except for abort(), which any may
  /// call.
  Result<std::unique_ptr<Communicator>> communicator(int ranks) const;

 private:
  MpiWorld() = default;

  int rank_ = 0;
  double limit_seconds_ = 0.0;
  std::vector<std::string> hosts_;
};

}  // namespace recmill
