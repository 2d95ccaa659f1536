// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/row_exchange.h"

#include <algorithm>
#include <cstring>

#include "comm/gather_values.h"

namespace recmill::store {
namespace {

constexpr int64_t kLine = 64;

int64_t whole_lines(int64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

RowExchange::RowExchange(Communicator& communicator, bool shared)
    : communicator_(communicator),
      shared_(shared),
      outgoing_(communicator.ranks()),
      segments_(communicator.ranks()) {
  RECMILL_CHECK(!shared || communicator.shares_memory());
}

int64_t RowExchange::post_bytes() const {
  return whole_lines(static_cast<int64_t>(sizeof(bytes_) + segments_.size() * sizeof(Segment)));
}

// Behind what the rank has posted of them.
std::byte* RowExchange::messages_of(int rank) const {
  return window_->of(rank).data() + half_ * (post_bytes() + capacity_) + post_bytes();
}

void RowExchange::begin(std::span<const Shape> shapes) {
  bytes_ = 0;
  for (size_t rank = 0; rank < shapes.size(); ++rank) {
    segments_[rank] = {bytes_, RowMessage::bytes_of(shapes[rank].counts, shapes[rank].widths)};
    bytes_ += segments_[rank].bytes;
  }
  half_ = 1 - half_;
  std::byte* memory = nullptr;
  if (window_ != nullptr && bytes_ <= capacity_) {
    memory = messages_of(communicator_.rank());
  } else {
    own_.resize(static_cast<size_t>(bytes_) / sizeof(int64_t));
    memory = reinterpret_cast<std::byte*>(own_.data());
  }
  for (size_t rank = 0; rank < shapes.size(); ++rank)
    outgoing_[rank].begin(memory + segments_[rank].offset, shapes[rank].counts,
                          shapes[rank].widths);
}

Status RowExchange::exchange() {
  if (shared_) return exchange_shared();
  std::vector<std::span<const std::byte>> bytes;
  for (const RowMessage& message : outgoing_) bytes.push_back(message.bytes());
  bytes[communicator_.rank()] = {};  // its own it reads where it is
  RECMILL_ASSIGN_OR_RETURN(received_, communicator_.all_to_all(bytes));
  return {};
}

Result<RowMessage> RowExchange::from(int rank, std::span<const int64_t> widths) const {
  if (rank == communicator_.rank()) return RowMessage::parse(outgoing_[rank].bytes(), widths);
  if (!shared_) return RowMessage::parse(received_.from(rank), widths);
  const Segment segment = segment_from(rank);
  return RowMessage::parse({messages_of(rank) + segment.offset, static_cast<size_t>(segment.bytes)},
                           widths);
}

RowExchange::Segment RowExchange::segment_from(int rank) const {
  Segment segment;
  const size_t at = sizeof(bytes_) + communicator_.rank() * sizeof(segment);
  std::memcpy(&segment, messages_of(rank) - post_bytes() + at, sizeof(segment));
  return segment;
}

void RowExchange::post() {
  std::byte* const at = messages_of(communicator_.rank()) - post_bytes();
  std::memcpy(at, &bytes_, sizeof(bytes_));
  std::memcpy(at + sizeof(bytes_), segments_.data(), segments_.size() * sizeof(Segment));
}

Status RowExchange::exchange_shared() {
  if (window_ == nullptr) {
    RECMILL_ASSIGN_OR_RETURN(const auto of_all, gather_values(bytes_, communicator_));
    RECMILL_RETURN_IF_ERROR(grow(std::ranges::max(of_all)));
  } else {
    post();
    RECMILL_RETURN_IF_ERROR(window_->fence(0));
    int64_t most = 0;
    for (int rank = 0; rank < communicator_.ranks(); ++rank) {
      int64_t needed = 0;
      std::memcpy(&needed, messages_of(rank) - post_bytes(), sizeof(needed));
      most = std::max(most, needed);
    }
    if (most > capacity_) RECMILL_RETURN_IF_ERROR(grow(most));
  }
  uint64_t sent = 0, received = 0;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    if (rank == communicator_.rank()) continue;
    sent += static_cast<uint64_t>(segments_[rank].bytes);
    received += static_cast<uint64_t>(segment_from(rank).bytes);
  }
  window_->count(sent, received);
  return {};
}

// Moves the messages to a window where those of every rank have room, and somewhat larger ones.
Status RowExchange::grow(int64_t bytes) {
  const auto before = std::move(window_);
  capacity_ = whole_lines(bytes + bytes / 4);
  const int64_t of_rank = 2 * (post_bytes() + capacity_);
  RECMILL_ASSIGN_OR_RETURN(window_, communicator_.window(static_cast<size_t>(of_rank)));
  std::byte* const memory = messages_of(communicator_.rank());
  for (size_t rank = 0; rank < outgoing_.size(); ++rank)
    outgoing_[rank].move_to(memory + segments_[rank].offset);
  post();
  return window_->fence(0);
}

}  // namespace recmill::store
