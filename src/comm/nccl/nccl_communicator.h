// SPDX-License-Identifier: Apache-2.0
// Ranks that each have a GPU: bytes travel between the GPUs' memory, by NCCL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "comm/call_header.h"
#include "comm/communicator.h"
#include "comm/gpu/gpu_exchange.h"
#include "comm/nccl/nccl_api.h"
#include "device/gpu/gpu.h"

namespace recmill {

struct NcclOptions {
  double limit_seconds = 600;            // the longest wait for other ranks
  size_t piece_bytes = size_t{4} << 20;  // of a host's message that is staged at a time
};

/// A communicator over another one of the same ranks, that of their hosts, and over a GPU of this
/// rank's. Headers, failures and what is between hosts' memory alone, exchanges, are the hosts';
/// the bytes of all-to-all, all-gather and broadcast go by NCCL. Nothing is enqueued before all
/// ranks are known to be in the same call, and no wait is longer than the limit or goes on when a
/// rank has failed; then what is enqueued is ended. GPUs share no memory here: there are no
/// windows.
class NcclCommunicator final : public Communicator {
 public:
  /// Collective over `hosts`. The options are the same on all ranks. Fails in one line, on all
  /// ranks, where NCCL does; it names the operation and the ranks that it is with.
  static Result<std::unique_ptr<NcclCommunicator>> make(const nccl::Api& api,
                                                        std::shared_ptr<Gpu> gpu,
                                                        std::shared_ptr<Communicator> hosts,
                                                        const NcclOptions& options);
  ~NcclCommunicator() override;

  int rank() const override { return hosts_->rank(); }
  int ranks() const override { return hosts_->ranks(); }
  std::string name(int rank) const override { return hosts_->name(rank); }
  Result<Received> all_to_all(std::span<const std::span<const std::byte>> to_rank) override;
  Result<Received> all_gather(std::span<const std::byte> bytes) override;
  Status broadcast(std::span<std::byte> bytes, int root) override;
  Status barrier() override;
  Result<std::unique_ptr<Exchange>> exchange(size_t bytes) override;
  bool shares_memory() const override { return false; }
  Result<std::unique_ptr<Window>> window(size_t bytes) override;
  Result<std::unique_ptr<Communicator>> duplicate() override;
  void abort(const Status& why) override { hosts_->abort(why); }
  Status failure() override { return hosts_->failure(); }

  /// Between GPUs' memory, enqueued on a stream of this rank's GPU: sends to_rank[r] to rank r and
  /// receives from_rank[r] from it; [ranks], this rank's own are left alone. Both ends know the
  /// sizes. Other ranks are not asked: who does not come is missed in wait().
  Status all_to_all(std::span<const DeviceBytes> to_rank, std::span<const DeviceBytes> from_rank,
                    GpuStream& stream);
  /// Sends `own` to all, and receives from_rank[r] from each other rank r.
  Status all_gather(DeviceBytes own, std::span<const DeviceBytes> from_rank, GpuStream& stream);
  /// Returns when what was enqueued on the stream has happened. Fails as NCCL did, and where a rank
  /// fails or the limit passes, which begins anew while `waits_for_others` says no. That is asked
  /// again and again; where it fails this does.
  Status wait(GpuStream& stream, const std::function<Result<bool>()>& waits_for_others = {});

 private:
  using Call = CallHeader::Call;
  class HostExchange;

  NcclCommunicator(const nccl::Api& api, std::shared_ptr<Gpu> gpu,
                   std::shared_ptr<Communicator> hosts, const NcclOptions& options);
  Status begin();
  std::vector<int> others() const;
  std::string names(std::span<const int> ranks) const;
  Result<std::vector<size_t>> agree(Call call, int root, std::span<const size_t> bytes);
  Result<Received> gather(Call call, std::span<const std::span<const std::byte>> to_rank);
  Status move(std::span<const std::span<const std::byte>> outgoing,
              std::span<const std::span<std::byte>> incoming, Call call);
  Status move_piece(std::span<const std::span<const std::byte>> outgoing,
                    std::span<const std::span<std::byte>> incoming, Call call);
  Status enqueue(const std::function<Status()>& messages);
  Status called(nccl::Result result, const std::string& what) const;
  Status wait_until(const std::function<Result<bool>()>& has_happened);
  Result<bool> is_idle();
  Status failed(const Status& status);
  std::string abort_nccl();

  const nccl::Api api_;
  const std::shared_ptr<Gpu> gpu_;
  const std::shared_ptr<Communicator> hosts_;
  const NcclOptions options_;
  bool is_duplicate_ = false;
  nccl::Comm comm_ = nullptr;  // null: none yet, or it was aborted
  uint64_t calls_ = 0;
  const char* call_ = "making an NCCL communicator";  // that was made last
  std::vector<int> peers_;                            // it is with
  Stopwatch waited_;                                  // for others
  PinnedBuffer outgoing_of_host_, incoming_of_host_;
  GpuBuffer outgoing_, incoming_;
  GpuStream stream_;
};

}  // namespace recmill
