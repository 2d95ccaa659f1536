// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_world.h"

#include <string>

namespace recmill {

Status NcclWorld::run(int ranks, const std::function<Status(Communicator&)>& body) {
  return hosts_->run(ranks, [&](Communicator& host) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const auto communicator,
                             between_gpus({std::shared_ptr<void>(), &host}));
    const Status status = body(*communicator);
    // Before it ends, so that it waits for nobody.
    if (!status.ok()) communicator->abort(status);
    return status;
  });
}

Result<std::unique_ptr<Communicator>> NcclWorld::communicator(int ranks) const {
  RECMILL_ASSIGN_OR_RETURN(auto host, hosts_->communicator(ranks));
  if (host == nullptr) return std::unique_ptr<Communicator>();
  return between_gpus(std::move(host));
}

Result<std::unique_ptr<Communicator>> NcclWorld::between_gpus(
    std::shared_ptr<Communicator> hosts) const {
  int number = 0;
  for (int rank = 0; rank < hosts->rank(); ++rank) number += hosts_->is_here(rank) ? 1 : 0;
  auto gpu = setting_.open_gpu(number);
  if (!gpu.ok()) {
    hosts->abort(gpu.status());
    return gpu.status();
  }
  RECMILL_ASSIGN_OR_RETURN(auto made, NcclCommunicator::make(setting_.api, *std::move(gpu),
                                                             std::move(hosts), setting_.options));
  return std::unique_ptr<Communicator>(std::move(made));
}

}  // namespace recmill
