// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "store/exchange/row_message.h"

namespace recmill::store {

/// A message of rows from each rank to each, filled in where it is sent from and read where it
/// arrives: between ranks that share memory that is the same place.
class RowExchange {
 public:
  /// What a message has room for.
  struct Shape {
    std::vector<int64_t> counts, widths;  // [groups]
  };

  /// The communicator outlives this. `shared`: its ranks share memory, which is then used.
  RowExchange(Communicator& communicator, bool shared);

  /// Begins this rank's messages, of `shapes` [ranks].
  void begin(std::span<const Shape> shapes);
  RowMessage& to(int rank) { return outgoing_[rank]; }
  /// Collective: delivers them.
  Status exchange();
  /// What came from `rank`, which may be this one; valid until the next exchange(). Fails when it
  /// is no message of `widths`.
  Result<RowMessage> from(int rank, std::span<const int64_t> widths) const;

 private:
  struct Segment {
    int64_t offset = 0, bytes = 0;  // into its sender's messages
  };

  int64_t post_bytes() const;
  std::byte* messages_of(int rank) const;
  Segment segment_from(int rank) const;
  void post();
  Status grow(int64_t bytes);
  Status exchange_shared();

  Communicator& communicator_;
  const bool shared_;
  std::vector<RowMessage> outgoing_;  // [ranks]
  std::vector<Segment> segments_;     // [ranks], of outgoing_
  int64_t bytes_ = 0;                 // of all of them
  std::vector<int64_t> own_;          // where they are that have no room in the window
  Received received_;                 // where ranks do not share memory
  // Of each rank two halves, in turns, so that a message can still be read while the next one is
  // filled in: of each, what the rank needs, its segments, and so many bytes of messages.
  std::unique_ptr<Window> window_;
  int64_t capacity_ = 0;  // bytes
  int half_ = 0;
};

}  // namespace recmill::store
