// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_link.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace recmill {

Status mpi_status(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status::Failed(std::string(call) + ": " + std::string(text, length));
}

namespace {

constexpr size_t kPiece = size_t{1} << 30;
constexpr int kTag = 1;
/// Looks at what is given up: what two ranks have begun comes to its end in that time.
constexpr int kLastLooks = 1000;

class MpiTransfers final : public Transfers {
 public:
  explicit MpiTransfers(MPI_Comm of) : of_(of) {}
  ~MpiTransfers() override { give_up(); }
  MpiTransfers(const MpiTransfers&) = delete;
  MpiTransfers& operator=(const MpiTransfers&) = delete;

  Status send(std::span<const std::byte> bytes, int to) override;
  Status receive(std::span<std::byte> bytes, int from) override;
  Result<bool> done() override;
  std::set<int> waited_for() const override;

 private:
  template <typename Post>
  Status post(size_t bytes, int peer, bool receives, const Post& post_piece);
  void give_up();

  const MPI_Comm of_;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;      // beside requests_
  std::vector<bool> receives_;  // beside requests_
  std::vector<int> finished_;   // scratch
};

Result<MPI_Comm> duplicate_of(MPI_Comm of) {
  MPI_Comm made = MPI_COMM_NULL;
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_dup(of, &made), "MPI_Comm_dup"));
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  return made;
}

template <typename Post>
Status MpiTransfers::post(size_t bytes, int peer, bool receives, const Post& post_piece) {
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

Status MpiTransfers::send(std::span<const std::byte> bytes, int to) {
  return post(bytes.size(), to, false, [&](size_t at, int size, MPI_Request* request) {
    return MPI_Isend(bytes.data() + at, size, MPI_BYTE, to, kTag, of_, request);
  });
}

Status MpiTransfers::receive(std::span<std::byte> bytes, int from) {
  return post(bytes.size(), from, true, [&](size_t at, int size, MPI_Request* request) {
    return MPI_Irecv(bytes.data() + at, size, MPI_BYTE, from, kTag, of_, request);
  });
}

Result<bool> MpiTransfers::done() {
  if (requests_.empty()) return true;
  int finished = 0;
  finished_.resize(requests_.size());
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &finished,
                              finished_.data(), MPI_STATUSES_IGNORE),
                 "MPI_Testsome"));
  if (!std::ranges::all_of(requests_, [](MPI_Request r) { return r == MPI_REQUEST_NULL; }))
    return false;
  requests_.clear();
  peers_.clear();
  receives_.clear();
  return true;
}

std::set<int> MpiTransfers::waited_for() const {
  std::set<int> ranks;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] != MPI_REQUEST_NULL) ranks.insert(peers_[i]);
  }
  return ranks;
}

void MpiTransfers::give_up() {
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

}  // namespace

Result<std::unique_ptr<MpiLink>> MpiLink::make(MPI_Comm of) {
  std::unique_ptr<MpiLink> made(new MpiLink);
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_rank(of, &made->rank_), "MPI_Comm_rank"));
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_size(of, &made->ranks_), "MPI_Comm_size"));
  RECMILL_ASSIGN_OR_RETURN(made->data_, duplicate_of(of));
  RECMILL_ASSIGN_OR_RETURN(made->notes_, duplicate_of(of));
  RECMILL_RETURN_IF_ERROR(made->look_for_hosts());
  RECMILL_RETURN_IF_ERROR(made->listen());
  return made;
}

MpiLink::~MpiLink() {
  if (hearing_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&hearing_);
    MPI_Wait(&hearing_, MPI_STATUS_IGNORE);
  }
  if (has_failures_) return;  // messages may be left, and who would free it with us is gone
  if (data_ != MPI_COMM_NULL) MPI_Comm_free(&data_);
  if (notes_ != MPI_COMM_NULL) MPI_Comm_free(&notes_);
}

Status MpiLink::look_for_hosts() {
  MPI_Comm host = MPI_COMM_NULL;
  int on_host = 0;
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Comm_split_type(data_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
                 "MPI_Comm_split_type"));
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_size(host, &on_host), "MPI_Comm_size"));
  MPI_Comm_free(&host);
  shares_memory_ = on_host == ranks_;
  return {};
}

Status MpiLink::listen() {
  return mpi_status(
      MPI_Irecv(&heard_, sizeof(heard_), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, notes_, &hearing_),
      "MPI_Irecv");
}

std::unique_ptr<Transfers> MpiLink::transfers() {
  return std::make_unique<MpiTransfers>(data_);
}

void MpiLink::tell(const FailureNote& note) {
  has_failures_ = true;
  // MPI reads it when it likes, after the link is gone too.
  const FailureNote* kept = new FailureNote(note);  // NOLINT
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    // Who cannot be told finds out by its limit.
    if (MPI_Isend(kept, sizeof(*kept), MPI_BYTE, rank, 0, notes_, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

Result<bool> MpiLink::hears(FailureNote& note) {
  if (hearing_ == MPI_REQUEST_NULL) return false;
  int heard = 0;
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Test(&hearing_, &heard, MPI_STATUS_IGNORE), "MPI_Test"));
  if (!heard) return false;
  has_failures_ = true;
  note = heard_;
  return true;
}

Result<std::unique_ptr<Link>> MpiLink::duplicate() {
  RECMILL_ASSIGN_OR_RETURN(auto made, make(data_));
  return std::unique_ptr<Link>(std::move(made));
}

}  // namespace recmill
