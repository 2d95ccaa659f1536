// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace recmill {

/// What MPI's return value says.
Status mpi_status(int code, const char* call);

/// Messages between a rank and others, in pieces, few of which are under way to and from each other
/// rank: so all links are in use at a time, where whole messages queue for one while another has
/// nothing to carry. Messages to a rank begin in the order in which they are given, as do those
/// from it, and both ends cut them alike. For one thread.
class MpiPieces {
 public:
  /// Messages that are waited for together.
  class Group {
   public:
    bool is_done() const { return left_ == 0; }
    /// Whether pieces have ended since the last call.
    bool has_moved() { return left_ != std::exchange(seen_left_, left_); }

   private:
    friend class MpiPieces;
    int64_t left_ = 0, seen_left_ = 0;  // pieces
  };

  /// As MPI counts in int.
  static constexpr size_t kLargestPiece = size_t{1} << 30;

  /// Over `of`, which stays the caller's and outlives it. `piece_bytes`: of a piece at most, the
  /// same on all ranks.
  MpiPieces(MPI_Comm of, int ranks, size_t piece_bytes);

  /// The memory is MPI's until the group is done; the group stays where it is.
  Status send(std::span<const std::byte> bytes, int to, Group& group);
  Status receive(std::span<std::byte> bytes, int from, Group& group);
  /// Looks which pieces have ended, and begins as many others. Whether some had nothing before them
  /// to wait for: the look came late.
  Result<bool> advance();
  /// Afterwards nothing of the group is received.
  void give_up(Group& group);
  /// The ranks that messages of the group are to come from or go to.
  std::set<int> peers(const Group& group) const;

 private:
  struct Message {
    std::byte* data = nullptr;  // of what is sent MPI only reads
    size_t left = 0;            // bytes that have not begun
    Group* group = nullptr;
  };
  struct Lane {
    int peer = 0;
    bool receives = false;
    int under_way = 0;
    std::deque<Message> waiting;
  };
  struct Piece {
    Lane* lane = nullptr;
    Group* group = nullptr;
  };

  int64_t pieces_of(size_t bytes) const;
  Status add(Lane& lane, const Message& message);
  Status begin(Lane& lane);
  void forget_ended();
  bool has_begun(const Group& group) const;

  const MPI_Comm of_;
  const size_t piece_bytes_;
  std::vector<Lane> to_, from_;  // [ranks]
  std::vector<MPI_Request> requests_;
  std::vector<Piece> pieces_;  // beside requests_
  std::vector<int> ended_;     // scratch
};

}  // namespace recmill
