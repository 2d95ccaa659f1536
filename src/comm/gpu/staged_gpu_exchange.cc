// SPDX-License-Identifier: Apache-2.0
#include "comm/gpu/staged_gpu_exchange.h"

#include "comm/gpu/piece_copies.h"
#include "device/gpu/staged_arrays.h"

namespace recmill {
namespace {

constexpr const char* kWhat = "messages between GPUs";

}  // namespace

Result<std::unique_ptr<StagedGpuExchange>> StagedGpuExchange::make(Gpu& gpu, Communicator& hosts) {
  std::unique_ptr<StagedGpuExchange> made(new StagedGpuExchange(gpu, hosts));
  RECMILL_ASSIGN_OR_RETURN(made->received_, gpu.open_event());
  return made;
}

Status StagedGpuExchange::all_to_all(std::span<const DevicePieces> to_rank,
                                     std::span<const DevicePieces> from_rank, GpuStream& stream) {
  RECMILL_CHECK(std::ssize(to_rank) == hosts_.ranks() && std::ssize(from_rank) == hosts_.ranks());
  RECMILL_CHECK(to_rank[hosts_.rank()].empty() && from_rank[hosts_.rank()].empty());
  const auto out = places_of(to_rank), in = places_of(from_rank);
  RECMILL_RETURN_IF_ERROR(received_.synchronize());
  RECMILL_RETURN_IF_ERROR(reserve(outgoing_, out.back(), gpu_, kWhat));
  RECMILL_RETURN_IF_ERROR(reserve(incoming_, in.back(), gpu_, kWhat));
  for (int rank = 0; rank < hosts_.ranks(); ++rank)
    RECMILL_RETURN_IF_ERROR(
        gather_pieces(to_rank[rank], outgoing_.as<std::byte>().data() + out[rank], gpu_, stream));
  RECMILL_RETURN_IF_ERROR(stream.synchronize());
  RECMILL_RETURN_IF_ERROR(swap(out, in));
  for (int rank = 0; rank < hosts_.ranks(); ++rank)
    RECMILL_RETURN_IF_ERROR(
        scatter_pieces(incoming_.as<std::byte>().data() + in[rank], from_rank[rank], gpu_, stream));
  return received_.record(stream);
}

// Between hosts' memory: a message for each rank that something goes to.
Status StagedGpuExchange::swap(std::span<const size_t> outgoing, std::span<const size_t> incoming) {
  RECMILL_ASSIGN_OR_RETURN(const auto exchange, hosts_.exchange(0));
  const auto part = [](const PinnedBuffer& of, std::span<const size_t> places, int rank) {
    return of.as<std::byte>().subspan(places[rank], places[rank + 1] - places[rank]);
  };
  for (int other = 0; other < hosts_.ranks(); ++other) {
    const auto to = part(outgoing_, outgoing, other), from = part(incoming_, incoming, other);
    if (!to.empty()) RECMILL_RETURN_IF_ERROR(exchange->send(to, other, 0));
    if (!from.empty()) RECMILL_RETURN_IF_ERROR(exchange->receive(from, other, 0));
  }
  return exchange->wait(0);
}

}  // namespace recmill
