// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_gpu_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace recmill {
namespace {

/// Each rank's piece of that number; nothing where it has fewer.
std::vector<DeviceBytes> pieces_at(std::span<const DevicePieces> of_ranks, size_t number) {
  std::vector<DeviceBytes> pieces;
  for (const DevicePieces& of : of_ranks)
    pieces.push_back(number < of.size() ? of[number] : DeviceBytes{});
  return pieces;
}

}  // namespace

NcclGpuExchange::~NcclGpuExchange() {
  for (const GpuDriver::Event event : marks_) gpu_.driver().close_event(event);
  for (const GpuDriver::Event event : resting_) gpu_.driver().close_event(event);
}

// The first pieces of all ranks, then the second ones: who has fewer is not waited for.
Status NcclGpuExchange::all_to_all(std::span<const DevicePieces> to_rank,
                                   std::span<const DevicePieces> from_rank, GpuStream& stream) {
  RECMILL_RETURN_IF_ERROR(pass_marks());
  RECMILL_RETURN_IF_ERROR(mark(stream));
  size_t most = 0;
  for (const auto& of_ranks : {to_rank, from_rank})
    for (const DevicePieces& pieces : of_ranks) most = std::max(most, pieces.size());
  for (size_t number = 0; number < most; ++number)
    RECMILL_RETURN_IF_ERROR(
        communicator_.all_to_all(pieces_at(to_rank, number), pieces_at(from_rank, number), stream));
  return mark(stream);
}

// A place behind all that is enqueued.
Status NcclGpuExchange::mark(GpuStream& stream) {
  if (resting_.empty()) {
    RECMILL_ASSIGN_OR_RETURN(resting_.emplace_back(), gpu_.driver().open_event());
  }
  marks_.push_back(resting_.back());
  resting_.pop_back();
  return gpu_.driver().record(marks_.back(), stream.handle());
}

// Those that the GPU has reached.
Status NcclGpuExchange::pass_marks() {
  while (!marks_.empty()) {
    RECMILL_ASSIGN_OR_RETURN(const bool is_passed, gpu_.driver().has_happened(marks_.front()));
    if (!is_passed) break;
    resting_.push_back(marks_.front());
    marks_.pop_front();
  }
  return {};
}

Status NcclGpuExchange::wait(GpuStream& stream) {
  Stopwatch own;  // since the GPU was at messages
  return communicator_.wait(stream, [&]() -> Result<bool> {
    const size_t before = marks_.size();
    RECMILL_RETURN_IF_ERROR(pass_marks());
    if (has_begun_messages() || marks_.size() < before) own.lap();
    const double limit = gpu_.options().kernel_seconds;
    if (own.seconds() <= limit) return has_begun_messages();
    const std::string running = gpu_.driver().give_up();
    return Status::Failed(fmt::format("{} is not done after {:g} s",
                                      running.empty() ? "a GPU's work between messages" : running,
                                      limit));
  });
}

}  // namespace recmill
