// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "comm/patience.h"
#include "device/gpu/staged_arrays.h"

namespace recmill {
namespace {

constexpr size_t kAlignment = 256;  // of a piece in a buffer

/// Where pieces of these sizes are behind each other; [count + 1], the last is the end.
template <typename Spans>
std::vector<size_t> places_of(const Spans& pieces) {
  std::vector<size_t> places{0};
  for (const auto& piece : pieces)
    places.push_back(places.back() + (piece.size() + kAlignment - 1) / kAlignment * kAlignment);
  return places;
}

template <typename Spans>
std::vector<DeviceBytes> device_bytes(const Spans& pieces, std::span<const size_t> places,
                                      const GpuBuffer& buffer) {
  std::vector<DeviceBytes> bytes;
  for (size_t i = 0; i < pieces.size(); ++i)
    bytes.push_back({buffer.address<std::byte>() + places[i], pieces[i].size()});
  return bytes;
}

/// Bytes [at, at + most) of each.
template <typename Byte>
std::vector<std::span<Byte>> parts_of(std::span<const std::span<Byte>> all, size_t at,
                                      size_t most) {
  std::vector<std::span<Byte>> parts;
  for (const auto& bytes : all) {
    const size_t begin = std::min(at, bytes.size());
    parts.push_back(bytes.subspan(begin, std::min(most, bytes.size() - begin)));
  }
  return parts;
}

}  // namespace

// ---- beginning and end

NcclCommunicator::NcclCommunicator(const nccl::Api& api, std::shared_ptr<Gpu> gpu,
                                   std::shared_ptr<Communicator> hosts, const NcclOptions& options)
    : api_(api), gpu_(std::move(gpu)), hosts_(std::move(hosts)), options_(options) {
  peers_ = others();
}

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::make(
    const nccl::Api& api, std::shared_ptr<Gpu> gpu, std::shared_ptr<Communicator> hosts,
    const NcclOptions& options) {
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(api, std::move(gpu), std::move(hosts), options));
  RECMILL_RETURN_IF_ERROR(made->begin());
  return made;
}

Status NcclCommunicator::begin() {
  auto stream = gpu_->open_stream();
  RECMILL_RETURN_IF_ERROR(failed(stream.status()));
  stream_ = *std::move(stream);
  nccl::UniqueId id;
  if (rank() == 0) RECMILL_RETURN_IF_ERROR(failed(called(api_.unique_id(&id), "ncclGetUniqueId")));
  RECMILL_RETURN_IF_ERROR(hosts_->broadcast(std::as_writable_bytes(std::span(&id, 1)), 0));
  nccl::Config config;
  gpu_->driver().make_current();
  RECMILL_RETURN_IF_ERROR(
      failed(called(api_.init(&comm_, ranks(), id, rank(), &config), "ncclCommInitRankConfig")));
  return wait_until([this] { return is_idle(); });
}

// It is destroyed where nothing can be under way any more, else aborted.
NcclCommunicator::~NcclCommunicator() {
  if (comm_ == nullptr) return;
  call_ = "ending an NCCL communicator";
  const bool is_well = failure().ok() && called(api_.finalize(comm_), "ncclCommFinalize").ok() &&
                       wait_until([this] { return is_idle(); }).ok();
  if (comm_ == nullptr) return;
  if (is_well) {
    api_.destroy(comm_);
  } else {
    abort_nccl();
  }
}

// Waits for no other rank, but for what is before its messages on this GPU: where that does not
// end, NCCL is left as it is to the end of the process, and what does not end is returned.
std::string NcclCommunicator::abort_nccl() {
  const nccl::Comm comm = std::exchange(comm_, nullptr);
  if (comm == nullptr || gpu_->driver().is_stuck()) return "";
  const auto aborted = std::make_shared<std::promise<void>>();
  std::thread([abort = api_.abort, comm, aborted] {
    abort(comm);
    aborted->set_value();
  }).detach();
  const double seconds = gpu_->options().kernel_seconds;
  const std::chrono::duration<double> limit(seconds);
  if (aborted->get_future().wait_for(limit) == std::future_status::ready) return "";
  const std::string kernels = gpu_->driver().give_up();
  return fmt::format("{} is not done after {:g} s",
                     kernels.empty() ? "what was enqueued before" : kernels, seconds);
}

Result<std::unique_ptr<Communicator>> NcclCommunicator::duplicate() {
  RECMILL_ASSIGN_OR_RETURN(std::shared_ptr<Communicator> hosts, hosts_->duplicate());
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(api_, gpu_, std::move(hosts), options_));
  made->is_duplicate_ = true;
  RECMILL_RETURN_IF_ERROR(made->begin());
  return std::unique_ptr<Communicator>(std::move(made));
}

// ---- between hosts' memory

Result<Received> NcclCommunicator::all_to_all(std::span<const std::span<const std::byte>> to_rank) {
  RECMILL_CHECK(static_cast<int>(to_rank.size()) == ranks(), std::to_string(to_rank.size()));
  return gather(Call::all_to_all, to_rank);
}

Result<Received> NcclCommunicator::all_gather(std::span<const std::byte> bytes) {
  return gather(Call::all_gather, std::vector(ranks(), bytes));
}

Status NcclCommunicator::barrier() {
  return gather(Call::barrier, std::vector(ranks(), std::span<const std::byte>())).status();
}

Status NcclCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  RECMILL_CHECK(root >= 0 && root < ranks(), std::to_string(root));
  const CallTimer timer(*this);
  RECMILL_RETURN_IF_ERROR(
      agree(Call::broadcast, root, std::vector(ranks(), bytes.size())).status());
  std::vector<std::span<const std::byte>> outgoing(ranks());
  std::vector<std::span<std::byte>> incoming(ranks());
  (rank() == root ? count_sent(bytes.size() * (ranks() - 1)) : count_received(bytes.size()));
  if (rank() == root) {
    outgoing[root] = bytes;
  } else {
    incoming[root] = bytes;
  }
  return move(outgoing, incoming, Call::broadcast);
}

// What each rank has for this one. Ranks that are in another call find out.
Result<std::vector<size_t>> NcclCommunicator::agree(Call call, int root,
                                                    std::span<const size_t> bytes) {
  const uint64_t number = calls_++;
  std::vector<CallHeader> own;
  std::vector<std::span<const std::byte>> headers;
  for (const size_t to : bytes) own.push_back({call, root, number, to});
  for (const CallHeader& header : own) headers.push_back(std::as_bytes(std::span(&header, 1)));
  RECMILL_ASSIGN_OR_RETURN(const Received received, hosts_->all_to_all(headers));
  std::vector<size_t> announced;
  for (int from = 0; from < ranks(); ++from) {
    CallHeader header;
    RECMILL_CHECK(received.from(from).size() == sizeof header, name(from));
    std::memcpy(&header, received.from(from).data(), sizeof header);
    RECMILL_RETURN_IF_ERROR(failed(check(header, {call, root, number, bytes[from]}, name(from))));
    announced.push_back(header.bytes);
  }
  return announced;
}

Result<Received> NcclCommunicator::gather(Call call,
                                          std::span<const std::span<const std::byte>> to_rank) {
  const CallTimer timer(*this);
  std::vector<size_t> sizes;
  for (const auto& bytes : to_rank) sizes.push_back(bytes.size());
  RECMILL_ASSIGN_OR_RETURN(const auto announced, agree(call, 0, sizes));
  Received received;
  received.offsets.assign(1, 0);
  for (const size_t bytes : announced) received.offsets.push_back(received.offsets.back() + bytes);
  received.bytes.resize(received.offsets.back());
  std::vector<std::span<const std::byte>> outgoing(to_rank.begin(), to_rank.end());
  std::vector<std::span<std::byte>> incoming;
  for (int from = 0; from < ranks(); ++from) {
    incoming.push_back(std::span(received.bytes).subspan(received.offsets[from], announced[from]));
    if (from == rank()) continue;
    count_sent(sizes[from]);
    count_received(announced[from]);
  }
  std::ranges::copy(to_rank[rank()], incoming[rank()].begin());
  incoming[rank()] = {};
  // One place for what all get.
  for (int to = 0; to < ranks(); ++to)
    if ((to == rank()) == (call == Call::all_to_all)) outgoing[to] = {};
  RECMILL_RETURN_IF_ERROR(move(outgoing, incoming, call));
  return received;
}

// By staging memory, a piece of each message after the other: both ends cut them alike. What is
// `outgoing` to this rank itself goes to all others.
Status NcclCommunicator::move(std::span<const std::span<const std::byte>> outgoing,
                              std::span<const std::span<std::byte>> incoming, Call call) {
  size_t longest = 0;
  for (const auto& bytes : outgoing) longest = std::max(longest, bytes.size());
  for (const auto& bytes : incoming) longest = std::max(longest, bytes.size());
  const size_t most = options_.piece_bytes;
  for (size_t at = 0; at < longest && ranks() > 1; at += most)
    RECMILL_RETURN_IF_ERROR(
        move_piece(parts_of(outgoing, at, most), parts_of(incoming, at, most), call));
  return {};
}

Status NcclCommunicator::move_piece(std::span<const std::span<const std::byte>> outgoing,
                                    std::span<const std::span<std::byte>> incoming, Call call) {
  const auto out = places_of(outgoing), in = places_of(incoming);
  const std::string what = fmt::format("messages of {}", name_of(call));
  RECMILL_RETURN_IF_ERROR(failed(reserve(outgoing_of_host_, out.back(), *gpu_, what)));
  RECMILL_RETURN_IF_ERROR(failed(reserve(incoming_of_host_, in.back(), *gpu_, what)));
  RECMILL_RETURN_IF_ERROR(failed(reserve(outgoing_, out.back(), *gpu_, what)));
  RECMILL_RETURN_IF_ERROR(failed(reserve(incoming_, in.back(), *gpu_, what)));
  for (size_t i = 0; i < outgoing.size(); ++i)
    std::ranges::copy(outgoing[i], outgoing_of_host_.as<std::byte>().begin() + out[i]);
  if (out.back() > 0)
    RECMILL_RETURN_IF_ERROR(failed(stream_.to_device(outgoing_, outgoing_of_host_, out.back())));
  const auto to = device_bytes(outgoing, out, outgoing_),
             from = device_bytes(incoming, in, incoming_);
  RECMILL_RETURN_IF_ERROR(call == Call::all_to_all ? all_to_all(to, from, stream_)
                                                   : all_gather(to[rank()], from, stream_));
  call_ = name_of(call);
  if (in.back() > 0)
    RECMILL_RETURN_IF_ERROR(failed(stream_.to_host(incoming_of_host_, incoming_, in.back())));
  RECMILL_RETURN_IF_ERROR(wait(stream_));
  for (size_t i = 0; i < incoming.size(); ++i)
    std::copy_n(incoming_of_host_.as<std::byte>().begin() + in[i], incoming[i].size(),
                incoming[i].begin());
  return {};
}

// Of the hosts; what it moves is counted here.
class NcclCommunicator::HostExchange final : public Exchange {
 public:
  HostExchange(NcclCommunicator& of, std::unique_ptr<Exchange> inner)
      : of_(of), inner_(std::move(inner)) {}
  Status send(std::span<const std::byte> bytes, int to, int group) override {
    of_.count_sent(bytes.size());
    return inner_->send(bytes, to, group);
  }
  Status receive(std::span<std::byte> bytes, int from, int group) override {
    of_.count_received(bytes.size());
    return inner_->receive(bytes, from, group);
  }
  Status wait(int group) override {
    const CallTimer timer(of_);
    return inner_->wait(group);
  }

 private:
  NcclCommunicator& of_;
  const std::unique_ptr<Exchange> inner_;
};

// Each rank waits for messages as it likes, while it computes and others are under way. NCCL's
// happen in one order that all ranks must have in common.
Result<std::unique_ptr<Exchange>> NcclCommunicator::exchange(size_t bytes) {
  const CallTimer timer(*this);
  RECMILL_ASSIGN_OR_RETURN(auto inner, hosts_->exchange(bytes));
  return std::unique_ptr<Exchange>(new HostExchange(*this, std::move(inner)));
}

Result<std::unique_ptr<Window>> NcclCommunicator::window(size_t) {
  RECMILL_CHECK(false, "GPUs share no memory");
}

// ---- between GPUs' memory

Status NcclCommunicator::all_to_all(std::span<const DeviceBytes> to_rank,
                                    std::span<const DeviceBytes> from_rank, GpuStream& stream) {
  RECMILL_CHECK(std::ssize(to_rank) == ranks() && std::ssize(from_rank) == ranks());
  RECMILL_RETURN_IF_ERROR(failure());
  call_ = name_of(Call::all_to_all);
  peers_.clear();
  for (const int other : others())
    if (to_rank[other].bytes > 0 || from_rank[other].bytes > 0) peers_.push_back(other);
  return enqueue([&]() -> Status {
    for (const int other : peers_) {
      const auto [data, bytes] = to_rank[other];
      const auto [memory, size] = from_rank[other];
      if (size > 0)
        RECMILL_RETURN_IF_ERROR(
            called(api_.receive(memory, size, nccl::kBytes, other, comm_, stream.handle()),
                   "ncclRecv from " + name(other)));
      if (bytes > 0)
        RECMILL_RETURN_IF_ERROR(
            called(api_.send(data, bytes, nccl::kBytes, other, comm_, stream.handle()),
                   "ncclSend to " + name(other)));
    }
    return {};
  });
}

// A broadcast for each rank that has something, in one group.
Status NcclCommunicator::all_gather(DeviceBytes own, std::span<const DeviceBytes> from_rank,
                                    GpuStream& stream) {
  RECMILL_CHECK(std::ssize(from_rank) == ranks());
  RECMILL_RETURN_IF_ERROR(failure());
  call_ = name_of(Call::all_gather);
  peers_ = others();
  return enqueue([&]() -> Status {
    for (int root = 0; root < ranks(); ++root) {
      const auto [memory, bytes] = root == rank() ? own : from_rank[root];
      if (bytes == 0) continue;
      RECMILL_RETURN_IF_ERROR(
          called(api_.broadcast(memory, memory, bytes, nccl::kBytes, root, comm_, stream.handle()),
                 "ncclBroadcast from " + name(root)));
    }
    return {};
  });
}

// A group, all or nothing of which is done.
Status NcclCommunicator::enqueue(const std::function<Status()>& messages) {
  if (peers_.empty()) return {};
  RECMILL_RETURN_IF_ERROR(failed(called(api_.group_start(), "ncclGroupStart")));
  const Status begun = messages();
  const Status ended = called(api_.group_end(), "ncclGroupEnd");
  RECMILL_RETURN_IF_ERROR(failed(begun.ok() ? ended : begun));
  return wait_until([this] { return is_idle(); });
}

Status NcclCommunicator::wait(GpuStream& stream,
                              const std::function<Result<bool>()>& waits_for_others) {
  RECMILL_RETURN_IF_ERROR(failure());
  return wait_until([&]() -> Result<bool> {
    RECMILL_ASSIGN_OR_RETURN(const bool is_done, stream.is_done());
    RECMILL_RETURN_IF_ERROR(is_idle().status());
    if (is_done || waits_for_others == nullptr) return is_done;
    RECMILL_ASSIGN_OR_RETURN(const bool waits, waits_for_others());
    if (!waits) waited_.lap();
    return false;
  });
}

// Whether the library has taken in what it was last given.
Result<bool> NcclCommunicator::is_idle() {
  nccl::Result state = 0;
  RECMILL_RETURN_IF_ERROR(called(api_.async_error(comm_, &state), "ncclCommGetAsyncError"));
  if (state == nccl::kInProgress) return false;
  RECMILL_RETURN_IF_ERROR(called(state, "with " + names(peers_)));
  return true;
}

Status NcclCommunicator::wait_until(const std::function<Result<bool>()>& has_happened) {
  const Stopwatch watch;
  waited_.lap();
  Patience patience(/*beside_work=*/is_duplicate_);
  while (true) {
    const auto happened = has_happened();
    RECMILL_RETURN_IF_ERROR(failed(happened.status()));
    if (*happened) return {};
    RECMILL_RETURN_IF_ERROR(failed(failure()));
    if (waited_.seconds() > options_.limit_seconds) break;
    patience.wait(watch.seconds());
  }
  return failed(Status::Failed(fmt::format("{}: no answer in {:g} s from {}", call_,
                                           options_.limit_seconds, names(peers_))));
}

// ---- failures

std::vector<int> NcclCommunicator::others() const {
  std::vector<int> others;
  // Each rank begins with another one, so that not all send to the same.
  for (int step = 1; step < ranks(); ++step) others.push_back((rank() + step) % ranks());
  return others;
}

std::string NcclCommunicator::names(std::span<const int> ranks) const {
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "" : ", ") + name(rank);
  return names;
}

Status NcclCommunicator::called(nccl::Result result, const std::string& what) const {
  if (result == 0 || result == nccl::kInProgress) return {};
  return Status::Failed(
      fmt::format("{}: {}: {} (NCCL error {})", call_, what, api_.error_string(result), result));
}

// Ends what is enqueued, and tells the others. Returns the failure that was heard of first.
Status NcclCommunicator::failed(const Status& status) {
  if (status.ok()) return status;
  hosts_->abort(status);
  const std::string stuck = abort_nccl();
  const Status heard = failure();
  const Status first = heard.message() == status.at(name(rank())).message() ? status : heard;
  return stuck.empty() ? first : Status::Failed(first.message() + "; here, " + stuck);
}

}  // namespace recmill
