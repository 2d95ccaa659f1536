// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>

#include "base/status.h"
#include "comm/link.h"
#include "comm/mpi/mpi_pieces.h"

namespace recmill {

/// Messages of MPI: between hosts in pieces of 128 KiB.
class MpiLink final : public Link {
 public:
  /// Collective over `of`, which stays the caller's. Waits for all ranks without a look at
  /// failures. `piece_bytes`: see MpiPieces; 0: by whether all ranks are on one host.
  static Result<std::unique_ptr<MpiLink>> make(MPI_Comm of, size_t piece_bytes = 0);
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
  std::unique_ptr<MpiPieces> pieces_;  // of data_
  int rank_ = 0, ranks_ = 0;
  bool shares_memory_ = false;
  size_t piece_bytes_ = 0;
  FailureNote heard_;
  MPI_Request hearing_ = MPI_REQUEST_NULL;
  std::atomic<bool> has_failures_{false};
};

}  // namespace recmill
