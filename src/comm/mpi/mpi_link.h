// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>

#include "base/status.h"
#include "comm/link.h"

namespace recmill {

/// What MPI's return value says.
Status mpi_status(int code, const char* call);

/// Messages of MPI, in pieces of at most 1 GiB, as MPI counts in int.
class MpiLink final : public Link {
 public:
  /// Collective over `of`, which stays the caller's. Waits for all ranks without a look at
  /// failures.
  static Result<std::unique_ptr<MpiLink>> make(MPI_Comm of);
  ~MpiLink() override;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::unique_ptr<Transfers> transfers() override;
  void tell(const FailureNote& note) override;
  Result<bool> hears(FailureNote& note) override;
  bool shares_memory() const override { return shares_memory_; }
  Result<std::unique_ptr<Link>> duplicate() override;

 private:
  MpiLink() = default;
  Status look_for_hosts();
  Status listen();

  MPI_Comm data_ = MPI_COMM_NULL, notes_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 0;
  bool shares_memory_ = false;
  FailureNote heard_;
  MPI_Request hearing_ = MPI_REQUEST_NULL;
  std::atomic<bool> has_failures_{false};
};

}  // namespace recmill
