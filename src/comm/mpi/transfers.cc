// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/transfers.h"

#include <algorithm>
#include <string>

namespace recmill {
namespace {

constexpr size_t kPiece = size_t{1} << 30;
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

template <typename Post>
Status Transfers::post(size_t bytes, int peer, bool receives, const Post& post_piece) {
  size_t at = 0;
  do {
    const size_t size = std::min(kPiece, bytes - at);
    MPI_Request request = MPI_REQUEST_NULL;
    RECMILL_RETURN_IF_ERROR(mpi_status(post_piece(at, static_cast<int>(size), &request),
                                       receives ? "MPI_Irecv" : "MPI_Isend"));
    requests_.push_back(request);
    peers_.push_back(peer);
    receives_.push_back(receives);
    at += size;
  } while (at < bytes);
  return {};
}

Status Transfers::send(std::span<const std::byte> bytes, int to) {
  return post(bytes.size(), to, false, [&](size_t at, int size, MPI_Request* request) {
    return MPI_Isend(bytes.data() + at, size, MPI_BYTE, to, kTag, of_, request);
  });
}

Status Transfers::receive(std::span<std::byte> bytes, int from) {
  return post(bytes.size(), from, true, [&](size_t at, int size, MPI_Request* request) {
    return MPI_Irecv(bytes.data() + at, size, MPI_BYTE, from, kTag, of_, request);
  });
}

Result<bool> Transfers::done() {
  if (requests_.empty()) return true;
  int finished = 0;
  std::vector<int> which(requests_.size());
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &finished,
                              which.data(), MPI_STATUSES_IGNORE),
                 "MPI_Testsome"));
  if (!std::ranges::all_of(requests_, [](MPI_Request r) { return r == MPI_REQUEST_NULL; }))
    return false;
  requests_.clear();
  peers_.clear();
  receives_.clear();
  return true;
}

std::set<int> Transfers::waited_for() const {
  std::set<int> ranks;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != MPI_REQUEST_NULL) ranks.insert(peers_[i]);
  }
  return ranks;
}

void Transfers::give_up() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != MPI_REQUEST_NULL && receives_[i]) MPI_Cancel(&requests_[i]);
  }
  for (int look = 0; look < kLastLooks; ++look) {
    const auto all = done();
    if (!all.ok() || *all) break;
  }
  requests_.clear();
  peers_.clear();
  receives_.clear();
}

}  // namespace recmill
