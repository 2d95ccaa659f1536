// SPDX-License-Identifier: Apache-2.0
#include "comm/gpu/window_gpu_exchange.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "comm/gather_values.h"
#include "comm/gpu/piece_copies.h"

namespace recmill {
namespace {

// What is shared of a GPU's memory is whole blocks of so many bytes: nothing else is to be in them.
constexpr size_t kBlock = size_t{2} << 20;

constexpr const char* kOption =
    "gpu.exchange = \"windows\", as \"auto\" is where processes have one GPU; \"host\" needs no "
    "memory that they share";

}  // namespace

bool processes_share_one_gpu(std::span<const GpuOfProcess> ranks) {
  std::set<int64_t> processes;
  for (const GpuOfProcess& rank : ranks) {
    if (rank.gpu != ranks[0].gpu || rank.gpu == GpuProperties().id) return false;
    processes.insert(rank.process);
  }
  return processes.size() == ranks.size();
}

Result<std::unique_ptr<WindowGpuExchange>> WindowGpuExchange::make(Gpu& gpu, Communicator& hosts) {
  std::unique_ptr<WindowGpuExchange> made(new WindowGpuExchange(gpu, hosts));
  RECMILL_ASSIGN_OR_RETURN(made->emptied_, gpu.open_event());
  RECMILL_ASSIGN_OR_RETURN(const auto processes, gather_values(getpid(), hosts));
  made->is_shared_ = std::ranges::count(processes, getpid()) < hosts.ranks();
  return made;
}

Result<bool> WindowGpuExchange::suits(const Gpu& gpu, Communicator& hosts) {
  const GpuOfProcess own{getpid(), gpu.properties().id};
  RECMILL_ASSIGN_OR_RETURN(const auto ranks, gather_values(own, hosts));
  return processes_share_one_gpu(ranks);
}

WindowGpuExchange::~WindowGpuExchange() {
  for (Opened& opened : opened_) close(opened);
}

Status WindowGpuExchange::all_to_all(std::span<const DevicePieces> to_rank,
                                     std::span<const DevicePieces> from_rank, GpuStream& stream) {
  RECMILL_CHECK(std::ssize(to_rank) == hosts_.ranks() && std::ssize(from_rank) == hosts_.ranks());
  RECMILL_CHECK(to_rank[hosts_.rank()].empty() && from_rank[hosts_.rank()].empty());
  const auto out = places_of(to_rank), in = places_of(from_rank);
  RECMILL_RETURN_IF_ERROR(emptied_.synchronize());
  RECMILL_RETURN_IF_ERROR(reserve_window(in.back()));
  RECMILL_ASSIGN_OR_RETURN(const auto places, tell_places(in));
  for (int rank = 0; rank < hosts_.ranks(); ++rank) {
    const size_t bytes = out[rank + 1] - out[rank];
    RECMILL_CHECK(places[rank].bytes == bytes, hosts_.name(rank));
    RECMILL_RETURN_IF_ERROR(open(rank, places[rank]));
    if (bytes == 0) continue;
    auto* const window = static_cast<std::byte*>(opened_[rank].memory);
    RECMILL_RETURN_IF_ERROR(gather_pieces(to_rank[rank], window + places[rank].at, gpu_, stream));
  }
  RECMILL_RETURN_IF_ERROR(stream.synchronize());
  RECMILL_RETURN_IF_ERROR(hosts_.barrier());
  before_ = {};
  for (int rank = 0; rank < hosts_.ranks(); ++rank)
    RECMILL_RETURN_IF_ERROR(
        scatter_pieces(window_.address<std::byte>() + in[rank], from_rank[rank], gpu_, stream));
  return emptied_.record(stream);
}

// One that is too small stays until all have closed it. A handle for other processes, which not all
// containers let have, is made where there are any.
Status WindowGpuExchange::reserve_window(size_t bytes) {
  if (bytes <= window_.size()) return {};
  before_ = std::move(window_);
  const size_t blocks = (bytes + bytes / 4 + kBlock - 1) / kBlock;
  RECMILL_ASSIGN_OR_RETURN(window_, gpu_.allocate(blocks * kBlock, "messages between GPUs"));
  handle_ = {getpid(), window_.address<void>(), {}};
  if (!is_shared_) return {};
  auto shared = gpu_.driver().share(window_.address<void>());
  if (!shared.ok()) return shared.status().at(kOption);
  handle_ = *shared;
  return {};
}

// [ranks]: as each tells this one. When it returns, all windows may be written.
Result<std::vector<WindowGpuExchange::Place>> WindowGpuExchange::tell_places(
    std::span<const size_t> incoming) {
  std::vector<Place> told;
  for (int rank = 0; rank < hosts_.ranks(); ++rank)
    told.push_back({handle_, incoming[rank], incoming[rank + 1] - incoming[rank]});
  std::vector<std::span<const std::byte>> messages;
  for (const Place& place : told) messages.push_back(std::as_bytes(std::span(&place, 1)));
  RECMILL_ASSIGN_OR_RETURN(const Received received, hosts_.all_to_all(messages));
  std::vector<Place> places(hosts_.ranks());
  for (int rank = 0; rank < hosts_.ranks(); ++rank) {
    RECMILL_CHECK(received.from(rank).size() == sizeof(Place), hosts_.name(rank));
    std::memcpy(&places[rank], received.from(rank).data(), sizeof(Place));
  }
  return places;
}

// Closes what a rank has no more, and opens what there is something for.
Status WindowGpuExchange::open(int rank, const Place& place) {
  Opened& opened = opened_[rank];
  if (opened.handle != place.window) close(opened);
  if (opened.memory != nullptr || place.bytes == 0) return {};
  auto memory = gpu_.driver().open_shared(place.window);
  if (!memory.ok())
    return memory.status().at(std::string(kOption) + ": the window of " + hosts_.name(rank));
  opened.memory = *memory;
  opened.handle = place.window;
  return {};
}

void WindowGpuExchange::close(Opened& opened) {
  if (opened.memory != nullptr) gpu_.driver().close_shared(opened.memory);
  opened = {};
}

}  // namespace recmill
