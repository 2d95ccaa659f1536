// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "comm/nccl/nccl_api.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/world.h"
#include "device/gpu/gpu.h"

namespace recmill {

/// What ranks with GPUs are made of.
struct NcclSetting {
  nccl::Api api = {};
  /// Opens one of this machine's GPUs; each rank has one, in the order of ranks.
  std::function<Result<std::unique_ptr<Gpu>>(int number)> open_gpu = nullptr;
  NcclOptions options = {};
};

/// The ranks of another world, each with a GPU: all its communicators are NcclCommunicators.
class NcclWorld final : public World {
 public:
  NcclWorld(std::unique_ptr<World> hosts, NcclSetting setting)
      : hosts_(std::move(hosts)), setting_(std::move(setting)) {}

  Result<int> ranks(int64_t wanted) const override { return hosts_->ranks(wanted); }
  int neighbours() const override { return hosts_->neighbours(); }
  bool is_here(int rank) const override { return hosts_->is_here(rank); }
  bool has_first_rank() const override { return hosts_->has_first_rank(); }
  bool tells() const override { return hosts_->tells(); }
  Status run(int ranks, const std::function<Status(Communicator&)>& body) override;
  Result<std::unique_ptr<Communicator>> communicator(int ranks) const override;
  Status fail(const Status& why) override { return hosts_->fail(why); }

 private:
  Result<std::unique_ptr<Communicator>> between_gpus(std::shared_ptr<Communicator> hosts) const;

  const std::unique_ptr<World> hosts_;
  const NcclSetting setting_;
};

}  // namespace recmill
