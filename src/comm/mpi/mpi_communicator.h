// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/mpi/transfers.h"

namespace recmill {

/// Every message has a header ahead of it that says which call it belongs to, so that ranks that
/// are not in step find out. Waits look at messages again and again, and see what other ranks tell
/// of failures: a call never waits for a rank that has failed, nor longer than its limit.
class MpiCommunicator final : public Communicator {
 public:
  /// `names` [ranks]: as failures name the ranks. Collective over `of`, which stays the caller's.
  static Result<std::unique_ptr<MpiCommunicator>> make(MPI_Comm of, std::vector<std::string> names,
                                                       double limit_seconds);
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(names_.size()); }
  std::string name(int rank) const override { return names_[rank]; }
  Result<Received> all_to_all(std::span<const std::span<const std::byte>> to_rank) override;
  Result<Received> all_gather(std::span<const std::byte> bytes) override;
  Status broadcast(std::span<std::byte> bytes, int root) override;
  Status barrier() override;
  void abort(const Status& why) override;

  /// Whether it has failed, and here before it was heard of any other rank's failure. Any thread.
  bool has_failed() const { return has_failed_; }
  bool failed_here() const { return failed_here_; }

 private:
  enum class Call : int32_t { all_to_all, all_gather, broadcast, barrier };
  struct Header {
    Call call = Call::barrier;
    int32_t root = 0;
    uint64_t number = 0;  // of the call, from 0
    uint64_t bytes = 0;   // that follow
  };
  /// What a rank that has failed tells the others.
  struct Note {
    int32_t rank = 0;
    int32_t code = 0;
    char text[1016] = {};
  };

  static const char* name_of(Call call);

  MpiCommunicator() = default;
  Status listen();
  Result<Received> exchange(Call call, std::span<const std::span<const std::byte>> to_rank);
  Status check(const Header& header, const Header& expected, int from) const;
  Status wait(std::initializer_list<Transfers*> all, Call call);
  Status failed(const Status& status);
  Status failure();

  MPI_Comm data_ = MPI_COMM_NULL, notes_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::vector<std::string> names_;
  double limit_seconds_ = 0.0;
  uint64_t calls_ = 0;
  Note heard_;
  MPI_Request hearing_ = MPI_REQUEST_NULL;
  std::mutex mutex_;
  Status failure_;  // of the rank that this one heard of first; guarded by mutex_
  std::atomic<bool> has_failed_{false}, failed_here_{false};
};

}  // namespace recmill
