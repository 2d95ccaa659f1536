// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_link.h"

#include <set>
#include <span>

namespace recmill {

namespace {

/// Large enough that a message costs little.
constexpr size_t kPieceBetweenHosts = 128 << 10;

class MpiTransfers final : public Transfers {
 public:
  explicit MpiTransfers(MpiPieces& pieces) : pieces_(pieces) {}
  ~MpiTransfers() override { pieces_.give_up(group_); }
  MpiTransfers(const MpiTransfers&) = delete;
  MpiTransfers& operator=(const MpiTransfers&) = delete;

  Status send(std::span<const std::byte> bytes, int to) override {
    return pieces_.send(bytes, to, group_);
  }
  Status receive(std::span<std::byte> bytes, int from) override {
    return pieces_.receive(bytes, from, group_);
  }
  Result<Progress> advance() override {
    RECMILL_ASSIGN_OR_RETURN(const bool late, pieces_.advance());
    const bool moved = group_.has_moved();
    if (group_.is_done()) return Progress::all;
    return late ? Progress::idle : moved ? Progress::some : Progress::none;
  }
  std::set<int> waited_for() const override { return pieces_.peers(group_); }

 private:
  MpiPieces& pieces_;
  MpiPieces::Group group_;
};

Result<MPI_Comm> duplicate_of(MPI_Comm of) {
  MPI_Comm made = MPI_COMM_NULL;
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_dup(of, &made), "MPI_Comm_dup"));
  RECMILL_RETURN_IF_ERROR(
      mpi_status(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  return made;
}

}  // namespace

Result<std::unique_ptr<MpiLink>> MpiLink::make(MPI_Comm of, size_t piece_bytes) {
  std::unique_ptr<MpiLink> made(new MpiLink);
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_rank(of, &made->rank_), "MPI_Comm_rank"));
  RECMILL_RETURN_IF_ERROR(mpi_status(MPI_Comm_size(of, &made->ranks_), "MPI_Comm_size"));
  RECMILL_ASSIGN_OR_RETURN(made->data_, duplicate_of(of));
  RECMILL_ASSIGN_OR_RETURN(made->notes_, duplicate_of(of));
  RECMILL_RETURN_IF_ERROR(made->look_for_hosts());
  if (piece_bytes == 0)
    piece_bytes = made->shares_memory_ ? MpiPieces::kLargestPiece : kPieceBetweenHosts;
  made->piece_bytes_ = piece_bytes;
  made->pieces_ = std::make_unique<MpiPieces>(made->data_, made->ranks_, piece_bytes);
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
  return std::make_unique<MpiTransfers>(*pieces_);
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
  RECMILL_ASSIGN_OR_RETURN(auto made, make(data_, piece_bytes_));
  return std::unique_ptr<Link>(std::move(made));
}

}  // namespace recmill
