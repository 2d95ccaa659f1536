// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/gpu.h"

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "device/check_grid.h"

namespace recmill {
namespace {

std::string mib(int64_t bytes) {
  const int64_t tenths = (bytes * 10 + (1 << 19)) >> 20;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

/// `pause`: between one look and the next.
template <class IsDone>
Status wait_until(const IsDone& is_done, const std::string& launched, Gpu& gpu,
                  std::chrono::microseconds pause = {}) {
  using Clock = std::chrono::steady_clock;
  const auto limit = std::chrono::duration<double>(gpu.options().kernel_seconds);
  const auto begin = Clock::now();
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(const bool done, is_done());
    if (done) return {};
    if (Clock::now() - begin > limit) {
      const std::string running = gpu.driver().give_up();
      std::ostringstream said;
      said << (running.empty() ? "a stream whose last kernel is " + launched : running)
           << " is not done after " << limit.count() << " s";
      return Status::Failed(said.str());
    }
    if (pause.count() > 0) {
      std::this_thread::sleep_for(pause);
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

GpuBuffer& GpuBuffer::operator=(GpuBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  driver_ = std::exchange(other.driver_, nullptr);
  memory_ = std::exchange(other.memory_, nullptr);
  size_ = std::exchange(other.size_, 0);
  pinned_ = other.pinned_;
  return *this;
}

void GpuBuffer::release() {
  if (memory_ == nullptr) return;
  pinned_ ? driver_->free_pinned(memory_) : driver_->free(memory_);
  memory_ = nullptr;
}

GpuStream& GpuStream::operator=(GpuStream&& other) noexcept {
  if (this == &other) return *this;
  release();
  gpu_ = std::exchange(other.gpu_, nullptr);
  stream_ = std::exchange(other.stream_, nullptr);
  event_ = std::exchange(other.event_, nullptr);
  launched_ = std::move(other.launched_);
  return *this;
}

void GpuStream::release() {
  if (gpu_ == nullptr) return;
  gpu_->driver().close_stream(stream_);
  if (event_ != nullptr) gpu_->driver().close_event(event_);
  gpu_ = nullptr;
}

Status GpuStream::to_device(GpuBuffer& to, const PinnedBuffer& from, size_t bytes, size_t to_at,
                            size_t from_at) {
  RECMILL_CHECK(to_at + bytes <= to.size() && from_at + bytes <= from.size());
  if (bytes == 0) return {};
  return gpu_->driver().copy(to.address<std::byte>() + to_at, from.as<std::byte>().data() + from_at,
                             bytes, stream_);
}

Status GpuStream::to_host(PinnedBuffer& to, const GpuBuffer& from, size_t bytes, size_t to_at,
                          size_t from_at) {
  RECMILL_CHECK(to_at + bytes <= to.size() && from_at + bytes <= from.size());
  if (bytes == 0) return {};
  return gpu_->driver().copy(to.as<std::byte>().data() + to_at, from.address<std::byte>() + from_at,
                             bytes, stream_);
}

Status GpuStream::copy(GpuBuffer& to, const GpuBuffer& from, size_t bytes) {
  RECMILL_CHECK(bytes <= to.size() && bytes <= from.size());
  if (bytes == 0) return {};
  return gpu_->driver().copy(to.address<std::byte>(), from.address<std::byte>(), bytes, stream_);
}

Status GpuStream::zero(GpuBuffer& memory) {
  if (memory.size() == 0) return {};
  return gpu_->driver().fill(memory.address<std::byte>(), 0, memory.size(), stream_);
}

Result<bool> GpuStream::is_done() {
  return gpu_->driver().is_done(stream_);
}

Status GpuStream::synchronize() {
  return wait_until([&] { return is_done(); }, launched_, *gpu_);
}

Status GpuStream::wait_for(GpuStream& other) {
  RECMILL_RETURN_IF_ERROR(gpu_->driver().record(other.event_, other.stream_));
  return gpu_->driver().wait(stream_, other.event_);
}

Status GpuStream::wait_for(const GpuEvent& event) {
  return event.stream_ == nullptr ? Status() : gpu_->driver().wait(stream_, event.event_);
}

GpuEvent& GpuEvent::operator=(GpuEvent&& other) noexcept {
  if (this == &other) return *this;
  release();
  gpu_ = std::exchange(other.gpu_, nullptr);
  event_ = std::exchange(other.event_, nullptr);
  stream_ = std::exchange(other.stream_, nullptr);
  launched_ = std::move(other.launched_);
  return *this;
}

void GpuEvent::release() {
  if (gpu_ == nullptr) return;
  gpu_->driver().close_event(event_);
  gpu_ = nullptr;
}

Status GpuEvent::record(GpuStream& stream) {
  RECMILL_RETURN_IF_ERROR(gpu_->driver().record(event_, stream.stream_));
  stream_ = stream.stream_;
  launched_ = stream.launched_;
  return {};
}

Status GpuEvent::synchronize(std::chrono::microseconds pause) {
  if (stream_ == nullptr) return {};
  return wait_until([&] { return gpu_->driver().has_happened(event_); }, launched_, *gpu_, pause);
}

// The stream is to be left as others know it, whatever was enqueued.
Result<GpuGraph> GpuStream::capture(const std::string& name,
                                    const std::function<Status()>& enqueue) {
  RECMILL_CHECK(!gpu_->options().synchronous, name);
  const std::string launched = launched_;
  RECMILL_RETURN_IF_ERROR(gpu_->driver().begin_capture(stream_).at(name));
  const Status enqueued = enqueue();
  auto graph = gpu_->driver().end_capture(stream_, name);
  launched_ = launched;
  GpuGraph made;
  if (graph.ok()) {
    made.driver_ = &gpu_->driver();
    made.graph_ = *graph;
    made.name_ = name;
  }
  RECMILL_RETURN_IF_ERROR(enqueued);
  RECMILL_RETURN_IF_ERROR(graph.status().at(name));
  return made;
}

Status GpuStream::launch(const GpuGraph& graph) {
  RECMILL_RETURN_IF_ERROR(gpu_->driver().launch(graph.graph_, stream_));
  launched_ = graph.name_;
  return {};
}

GpuGraph& GpuGraph::operator=(GpuGraph&& other) noexcept {
  if (this == &other) return *this;
  release();
  driver_ = std::exchange(other.driver_, nullptr);
  graph_ = std::exchange(other.graph_, nullptr);
  name_ = std::move(other.name_);
  return *this;
}

void GpuGraph::release() {
  if (driver_ == nullptr) return;
  driver_->close_graph(graph_);
  driver_ = nullptr;
}

GpuTimer& GpuTimer::operator=(GpuTimer&& other) noexcept {
  if (this == &other) return *this;
  release();
  driver_ = std::exchange(other.driver_, nullptr);
  first_ = std::exchange(other.first_, nullptr);
  last_ = std::exchange(other.last_, nullptr);
  return *this;
}

void GpuTimer::release() {
  if (driver_ == nullptr) return;
  if (first_ != nullptr) driver_->close_event(first_);
  if (last_ != nullptr) driver_->close_event(last_);
  driver_ = nullptr;
}

Status GpuTimer::start(GpuStream& stream) {
  return driver_->record(first_, stream.stream_);
}

Status GpuTimer::stop(GpuStream& stream) {
  return driver_->record(last_, stream.stream_);
}

Result<double> GpuTimer::seconds() const {
  return driver_->seconds_between(first_, last_);
}

Result<GpuBuffer> Gpu::allocate(size_t bytes, const std::string& what, GpuMemory where) {
  const bool pinned = where == GpuMemory::host;
  auto memory = pinned ? driver_->allocate_pinned(bytes) : driver_->allocate(bytes);
  if (!memory.ok()) return memory.status().at(what);
  if (*memory == nullptr)
    return Status::Failed(what + ": " + mib(static_cast<int64_t>(bytes)) +
                          " of device memory, of which " + mib(driver_->free_bytes()) + " of " +
                          mib(properties().memory) + " are free");
  GpuBuffer buffer;
  buffer.driver_ = driver_.get();
  buffer.memory_ = *memory;
  buffer.size_ = bytes;
  buffer.pinned_ = pinned;
  return buffer;
}

Result<PinnedBuffer> Gpu::allocate_pinned(size_t bytes, const std::string& what) {
  PinnedBuffer pinned;
  RECMILL_ASSIGN_OR_RETURN(pinned.buffer_, allocate(bytes, what, GpuMemory::host));
  return pinned;
}

Result<GpuStream> Gpu::open_stream(StreamPriority priority) {
  GpuStream made;
  RECMILL_ASSIGN_OR_RETURN(made.stream_, driver_->open_stream(priority));
  made.gpu_ = this;
  RECMILL_ASSIGN_OR_RETURN(made.event_, driver_->open_event());
  return made;
}

Result<GpuEvent> Gpu::open_event() {
  GpuEvent made;
  RECMILL_ASSIGN_OR_RETURN(made.event_, driver_->open_event());
  made.gpu_ = this;
  return made;
}

Result<GpuTimer> Gpu::open_timer() {
  GpuTimer made;
  made.driver_ = driver_.get();
  RECMILL_ASSIGN_OR_RETURN(made.first_, driver_->open_event());
  RECMILL_ASSIGN_OR_RETURN(made.last_, driver_->open_event());
  return made;
}

Result<GpuKernel> Gpu::load(const KernelCode& code) {
  RECMILL_ASSIGN_OR_RETURN(const auto function, driver_->load(code));
  return GpuKernel{code.name, function, driver_->most_threads(function), code.most_dynamic_shared};
}

Status Gpu::launch(const GpuKernel& kernel, const Grid& grid, const void* arguments, size_t bytes,
                   GpuStream& stream) {
  RECMILL_RETURN_IF_ERROR(check_grid(kernel.name, grid));
  if (grid.threads.count() > kernel.most_threads)
    return Status::Failed("kernel " + kernel.name + ": a block of " +
                          std::to_string(grid.threads.count()) + " threads, of which it takes " +
                          std::to_string(kernel.most_threads));
  if (static_cast<int64_t>(grid.dynamic_shared) > kernel.most_dynamic_shared)
    return Status::Failed(
        "kernel " + kernel.name + ": " + std::to_string(grid.dynamic_shared) +
        " bytes of shared memory for a block, beside its own; it was loaded for " +
        std::to_string(kernel.most_dynamic_shared));
  const Status launched = driver_->launch(kernel.function, grid, arguments, bytes, stream.stream_);
  if (!launched.ok()) return launched;
  stream.launched_ = kernel.name;
  return options_.synchronous ? stream.synchronize() : Status();
}

Status Gpu::check_nan(const GpuKernel& kernel, const float* floats, int64_t rows, int64_t dim,
                      int64_t stride, const std::string& what, GpuStream& stream) {
  if (!options_.check_nan || rows == 0) return {};
  const size_t count = static_cast<size_t>((rows - 1) * stride + dim);
  RECMILL_ASSIGN_OR_RETURN(const auto read,
                           allocate_pinned(count * sizeof(float), "what a kernel wrote"));
  const auto values = read.as<float>();
  RECMILL_RETURN_IF_ERROR(
      driver_->copy(values.data(), floats, count * sizeof(float), stream.stream_));
  RECMILL_RETURN_IF_ERROR(stream.synchronize());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t element = 0; element < dim; ++element) {
      if (!std::isnan(values[row * stride + element])) continue;
      return Status::Failed("kernel " + kernel.name + ": wrote a NaN as element " +
                            std::to_string(element) + " of row " + std::to_string(row) + " of " +
                            what);
    }
  }
  return {};
}

}  // namespace recmill
