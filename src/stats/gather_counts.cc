// SPDX-License-Identifier: Apache-2.0
#include "stats/gather_counts.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace recmill::stats {
namespace {

constexpr int64_t kMessageRows = int64_t{8} << 20;

/// Sends `bytes` to rank 0; there, hands those of each other rank to take(bytes).
template <typename Take>
Status send_to_first(std::span<const std::byte> bytes, Communicator& communicator,
                     const Take& take) {
  const bool first = communicator.rank() == 0;
  std::vector<std::span<const std::byte>> to_rank(static_cast<size_t>(communicator.ranks()));
  if (!first) to_rank[0] = bytes;
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator.all_to_all(to_rank));
  for (int rank = 1; first && rank < communicator.ranks(); ++rank) take(received.from(rank));
  return {};
}

/// Rows of a table that go in one message with others.
struct Piece {
  size_t table = 0;
  int64_t first = 0, rows = 0;
};

std::vector<std::vector<Piece>> messages_of(const AccessCounter& counter) {
  std::vector<std::vector<Piece>> messages;
  int64_t room = 0;
  for (size_t t = 0; t < counter.tables(); ++t) {
    const auto rows = std::ssize(counter.counters(t));
    for (int64_t first = 0; first < rows;) {
      if (room == 0) {
        messages.emplace_back();
        room = kMessageRows;
      }
      const int64_t taken = std::min(room, rows - first);
      messages.back().push_back({t, first, taken});
      first += taken;
      room -= taken;
    }
  }
  return messages;
}

Status gather_counters(AccessCounter& counter, Communicator& communicator) {
  std::vector<uint8_t> own;
  for (const std::vector<Piece>& message : messages_of(counter)) {
    own.clear();
    for (const Piece& piece : message) {
      const auto rows =
          counter.counters(piece.table)
              .subspan(static_cast<size_t>(piece.first), static_cast<size_t>(piece.rows));
      own.insert(own.end(), rows.begin(), rows.end());
    }
    RECMILL_RETURN_IF_ERROR(send_to_first(
        std::as_bytes(std::span(own)), communicator, [&](std::span<const std::byte> bytes) {
          RECMILL_CHECK(bytes.size() == own.size());
          const auto* counters = reinterpret_cast<const uint8_t*>(bytes.data());
          for (const Piece& piece : message) {
            counter.merge_counters(piece.table, piece.first,
                                   {counters, static_cast<size_t>(piece.rows)});
            counters += piece.rows;
          }
        }));
  }
  return {};
}

/// Samples, and of each table its sums and which rows wrapped how often.
Status gather_wrapped(AccessCounter& counter, Communicator& communicator) {
  std::vector<int64_t> own = {counter.samples()};
  for (size_t t = 0; t < counter.tables(); ++t) {
    const auto wrapped = counter.wrapped(t);
    const auto sums = counter.sums(t);
    own.insert(own.end(), {sums.lookups, sums.bags, std::ssize(wrapped)});
    for (const auto& [row, times] : wrapped) own.insert(own.end(), {row, times});
  }
  return send_to_first(
      std::as_bytes(std::span(own)), communicator, [&](std::span<const std::byte> bytes) {
        std::vector<int64_t> theirs(bytes.size() / sizeof(int64_t));
        std::memcpy(theirs.data(), bytes.data(), bytes.size());
        auto next = theirs.begin();
        counter.merge_samples(*next++);
        for (size_t t = 0; t < counter.tables(); ++t) {
          counter.merge_sums(t, {next[0], next[1]});
          std::vector<std::pair<int64_t, int64_t>> wrapped(static_cast<size_t>(next[2]));
          next += 3;
          for (auto& [row, times] : wrapped) {
            row = *next++;
            times = *next++;
          }
          counter.merge_wrapped(t, wrapped);
        }
      });
}

}  // namespace

Status gather_counts(AccessCounter& counter, Communicator& communicator) {
  if (communicator.ranks() == 1) return {};
  // These first: what merging counters makes wrap on rank 0 is no other rank's.
  RECMILL_RETURN_IF_ERROR(gather_wrapped(counter, communicator));
  return gather_counters(counter, communicator);
}

}  // namespace recmill::stats
