// SPDX-License-Identifier: Apache-2.0
// Messages of any size under way between this rank and others.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <set>
#include <span>
#include <vector>

#include "base/status.h"

namespace recmill {

/// What MPI's return value says.
Status mpi_status(int code, const char* call);

/// Sent in pieces of at most 1 GiB, as MPI counts in int. Between two ranks messages arrive in the
/// order in which they were sent.
class Transfers {
 public:
  explicit Transfers(MPI_Comm of) : of_(of) {}
  ~Transfers() { give_up(); }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// The memory is MPI's until all are done, or given up.
  Status send(std::span<const std::byte> bytes, int to);
  Status receive(std::span<std::byte> bytes, int from);
  /// Moves them on. Whether all are done.
  Result<bool> done();
  /// The ranks that messages are to come from or go to.
  std::set<int> waited_for() const;
  /// Takes back what can be taken back: no message is received afterwards, and none that nobody
  /// receives is read from its memory.
  void give_up();

 private:
  template <typename Post>
  Status post(size_t bytes, int peer, bool receives, const Post& post_piece);

  const MPI_Comm of_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;      // beside requests_
  std::vector<bool> receives_;  // beside requests_
};

}  // namespace recmill
