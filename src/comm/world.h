// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "comm/communicator.h"

namespace recmill {

/// Where the ranks of a job are: in this process, or one in each process of the job.
class World {
 public:
  virtual ~World() = default;
  /// Ranks of a job that wants so many; 0: it does not say. A bad request where there are none
  /// such.
  virtual Result<int> ranks(int64_t wanted) const = 0;
  /// Processes of the job on this machine, which share its cores, and whether a rank is on it.
  virtual int neighbours() const = 0;
  virtual bool is_here(int rank) const = 0;
  /// Whether rank 0 is in this process.
  virtual bool has_first_rank() const = 0;
  /// Whether this process is the one to tell people what happened: that of rank 0, or after fail()
  /// that of the first rank which failed of itself.
  virtual bool tells() const = 0;
  /// Runs body(communicator) for each rank of this process, `ranks` over all processes, and waits
  /// for them. Collective over processes. A rank that returns an error aborts the others; that of
  /// the rank which failed first is returned everywhere, with the rank in front of its message when
  /// there are several.
  virtual Status run(int ranks, const std::function<Status(Communicator&)>& body) = 0;
  /// A communicator of the first `ranks` processes, besides that of run(); null on the others.
  /// Collective over all of them. Several may be in use at the same time, each by one thread,
  /// except for abort(), which any may call. A bad request where there are not so many processes.
  virtual Result<std::unique_ptr<Communicator>> communicator(int ranks) const = 0;
  /// The last call after a failure of run() or outside of it, so that no process waits for this
  /// one. Returns `why` as people are to be told of it: with the rank in front where it is not yet,
  /// and not all ranks failed by themselves.
  virtual Status fail(const Status& why) = 0;
};

}  // namespace recmill
