// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu/gpu_driver.h"

namespace recmill::testing {

/// What a GPU's streams were told, each in the order of the calls.
struct GpuCall {
  enum class Kind { copy, fill, launch, graph, record, wait };
  /// From the host's memory, to it, or neither.
  enum class Way { within, to_device, to_host };
  Kind kind = Kind::copy;
  GpuDriver::Stream stream = nullptr;
  GpuDriver::Event event = nullptr;       // record, wait
  std::string kernel = {};                // launch
  Grid grid = {};                         // launch
  std::vector<std::byte> arguments = {};  // launch: the kernel's struct
  size_t bytes = 0;                       // copy
  Way way = Way::within;                  // copy
};

/// Does as another driver does, and writes down what streams are told; calls of several threads in
/// some order.
class RecordingDriver final : public GpuDriver {
 public:
  RecordingDriver(std::unique_ptr<GpuDriver> inner, std::vector<GpuCall>& calls)
      : inner_(std::move(inner)), calls_(calls) {}

  const GpuProperties& properties() const override { return inner_->properties(); }
  void make_current() override { inner_->make_current(); }

  Result<void*> allocate(size_t bytes) override { return inner_->allocate(bytes); }
  void free(void* memory) override { inner_->free(memory); }
  int64_t free_bytes() override { return inner_->free_bytes(); }
  Result<GpuMemoryHandle> share(void* memory) override { return inner_->share(memory); }
  Result<void*> open_shared(const GpuMemoryHandle& handle) override {
    return inner_->open_shared(handle);
  }
  void close_shared(void* memory) override { inner_->close_shared(memory); }
  Result<void*> allocate_pinned(size_t bytes) override {
    auto memory = inner_->allocate_pinned(bytes);
    const std::lock_guard lock(mutex_);
    if (memory.ok()) pinned_[static_cast<std::byte*>(*memory)] = bytes;
    return memory;
  }
  void free_pinned(void* memory) override {
    {
      const std::lock_guard lock(mutex_);
      pinned_.erase(static_cast<std::byte*>(memory));
    }
    inner_->free_pinned(memory);
  }

  Result<Stream> open_stream(StreamPriority priority) override {
    return inner_->open_stream(priority);
  }
  void close_stream(Stream stream) override { inner_->close_stream(stream); }
  Status copy(void* to, const void* from, size_t bytes, Stream stream) override {
    GpuCall call{GpuCall::Kind::copy, stream};
    call.bytes = bytes;
    const bool from_host = is_pinned(from), to_host = is_pinned(to);
    if (from_host != to_host) call.way = to_host ? GpuCall::Way::to_host : GpuCall::Way::to_device;
    note(std::move(call));
    return inner_->copy(to, from, bytes, stream);
  }
  Status fill(void* to, uint8_t byte, size_t bytes, Stream stream) override {
    note({GpuCall::Kind::fill, stream});
    return inner_->fill(to, byte, bytes, stream);
  }
  Status launch(Function function, const Grid& grid, const void* arguments, size_t bytes,
                Stream stream) override {
    const auto* const first = static_cast<const std::byte*>(arguments);
    note({GpuCall::Kind::launch, stream, nullptr, name_of(function), grid, {first, first + bytes}});
    return inner_->launch(function, grid, arguments, bytes, stream);
  }
  Result<bool> is_done(Stream stream) override { return inner_->is_done(stream); }

  Result<Event> open_event() override { return inner_->open_event(); }
  void close_event(Event event) override { inner_->close_event(event); }
  Status record(Event event, Stream stream) override {
    note({GpuCall::Kind::record, stream, event});
    return inner_->record(event, stream);
  }
  Status wait(Stream stream, Event event) override {
    note({GpuCall::Kind::wait, stream, event});
    return inner_->wait(stream, event);
  }
  Result<bool> has_happened(Event event) override { return inner_->has_happened(event); }
  Result<double> seconds_between(Event first, Event last) override {
    return inner_->seconds_between(first, last);
  }

  std::string give_up() override { return inner_->give_up(); }
  bool is_stuck() const override { return inner_->is_stuck(); }

  Status begin_capture(Stream stream) override { return inner_->begin_capture(stream); }
  Result<Graph> end_capture(Stream stream, const std::string& name) override {
    return inner_->end_capture(stream, name);
  }
  Status launch(Graph graph, Stream stream) override {
    note({GpuCall::Kind::graph, stream});
    return inner_->launch(graph, stream);
  }
  void close_graph(Graph graph) override { inner_->close_graph(graph); }

  Result<Function> load(const KernelCode& code) override {
    auto function = inner_->load(code);
    const std::lock_guard lock(mutex_);
    if (function.ok()) names_[*function] = code.name;
    return function;
  }
  int most_threads(Function function) override { return inner_->most_threads(function); }

 private:
  void note(GpuCall call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  std::string name_of(Function function) const {
    const std::lock_guard lock(mutex_);
    return names_.at(function);
  }
  bool is_pinned(const void* memory) const {
    const std::lock_guard lock(mutex_);
    const auto after = pinned_.upper_bound(static_cast<const std::byte*>(memory));
    if (after == pinned_.begin()) return false;
    const auto& [first, bytes] = *std::prev(after);
    return memory < first + bytes;
  }

  const std::unique_ptr<GpuDriver> inner_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<GpuCall>& calls_;
  std::map<const std::byte*, size_t> pinned_;  // by where it begins
  std::map<Function, std::string> names_;
};

}  // namespace recmill::testing
