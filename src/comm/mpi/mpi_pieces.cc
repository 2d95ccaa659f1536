// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_pieces.h"

#include <algorithm>
#include <string>

namespace recmill {
namespace {

/// Enough that a link is busy while its ranks look elsewhere.
constexpr int kUnderWay = 4;
constexpr int kTag = 1;
/// Looks at what is given up: what two ranks have begun comes to its end in that time.
constexpr int kLastLooks = 1000;

}  // namespace

Status mpi_status(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status::Failed(std::string(call) + ": " + std::string(text, length));
}

MpiPieces::MpiPieces(MPI_Comm of, int ranks, size_t piece_bytes)
    : of_(of), piece_bytes_(piece_bytes), to_(ranks), from_(ranks) {
  RECMILL_CHECK(piece_bytes >= 1 && piece_bytes <= kLargestPiece, std::to_string(piece_bytes));
  for (int rank = 0; rank < ranks; ++rank) {
    to_[rank].peer = from_[rank].peer = rank;
    from_[rank].receives = true;
  }
}

int64_t MpiPieces::pieces_of(size_t bytes) const {
  return std::max<int64_t>(1, static_cast<int64_t>((bytes + piece_bytes_ - 1) / piece_bytes_));
}

Status MpiPieces::send(std::span<const std::byte> bytes, int to, Group& group) {
  return add(to_[to], {const_cast<std::byte*>(bytes.data()), bytes.size(), &group});  // NOLINT
}

Status MpiPieces::receive(std::span<std::byte> bytes, int from, Group& group) {
  return add(from_[from], {bytes.data(), bytes.size(), &group});
}

Status MpiPieces::add(Lane& lane, const Message& message) {
  message.group->left_ += pieces_of(message.left);
  lane.waiting.push_back(message);
  return begin(lane);
}

Status MpiPieces::begin(Lane& lane) {
  while (lane.under_way < kUnderWay && !lane.waiting.empty()) {
    Message& message = lane.waiting.front();
    const auto size = static_cast<int>(std::min(piece_bytes_, message.left));
    MPI_Request request = MPI_REQUEST_NULL;
    RECMILL_RETURN_IF_ERROR(
        lane.receives
            ? mpi_status(MPI_Irecv(message.data, size, MPI_BYTE, lane.peer, kTag, of_, &request),
                         "MPI_Irecv")
            : mpi_status(MPI_Isend(message.data, size, MPI_BYTE, lane.peer, kTag, of_, &request),
                         "MPI_Isend"));
    requests_.push_back(request);
    pieces_.push_back({&lane, message.group});
    ++lane.under_way;
    message.data += size;
    message.left -= size;
    if (message.left == 0) lane.waiting.pop_front();
  }
  return {};
}

Result<bool> MpiPieces::advance() {
  if (requests_.empty()) return false;
  int count = 0;
  ended_.resize(requests_.size());
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                              ended_.data(), MPI_STATUSES_IGNORE),
                 "MPI_Testsome"));
  if (count == 0) return false;
  std::vector<Lane*> freed;
  for (int i = 0; i < count; ++i) {
    const auto [lane, group] = pieces_[ended_[i]];
    --lane->under_way;
    --group->left_;
    freed.push_back(lane);
  }
  forget_ended();
  bool late = false;
  for (Lane* lane : freed) {
    late = late || (lane->under_way == 0 && !lane->waiting.empty());
    RECMILL_RETURN_IF_ERROR(begin(*lane));
  }
  return late;
}

void MpiPieces::forget_ended() {
  size_t kept = 0;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    pieces_[kept++] = pieces_[i];
  }
  requests_.resize(kept);
  pieces_.resize(kept);
}

bool MpiPieces::has_begun(const Group& group) const {
  return std::ranges::any_of(pieces_, [&](const Piece& piece) { return piece.group == &group; });
}

void MpiPieces::give_up(Group& group) {
  if (group.is_done()) return;
  for (auto* lanes : {&to_, &from_})
    for (Lane& lane : *lanes)
      std::erase_if(lane.waiting, [&](const Message& of) { return of.group == &group; });
  for (size_t i = 0; i < pieces_.size(); ++i)
    if (pieces_[i].group == &group && pieces_[i].lane->receives) MPI_Cancel(&requests_[i]);
  for (int look = 0; look < kLastLooks && has_begun(group); ++look)
    if (!advance().ok()) break;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].group != &group) continue;
    --pieces_[i].lane->under_way;
    requests_[i] = MPI_REQUEST_NULL;  // MPI's own, who may never end it
  }
  forget_ended();
  group.left_ = 0;
}

std::set<int> MpiPieces::peers(const Group& group) const {
  std::set<int> peers;
  for (const Piece& piece : pieces_)
    if (piece.group == &group) peers.insert(piece.lane->peer);
  for (const auto* lanes : {&to_, &from_})
    for (const Lane& lane : *lanes)
      for (const Message& message : lane.waiting)
        if (message.group == &group) peers.insert(lane.peer);
  return peers;
}

}  // namespace recmill
