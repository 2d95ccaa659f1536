// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/emulated_driver.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/check_grid.h"
#include "device/gpu/emulated_memory.h"
#include "device/gpu/gpu_properties.h"

namespace recmill {
namespace {

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

class EmulatedDriver;

using Work = std::function<Result<bool>()>;  // says whether it has happened
using EmulatedGraph = std::vector<Work>;

struct EmulatedStream {
  EmulatedDriver* driver = nullptr;
  std::deque<Work> waiting;
  std::unique_ptr<EmulatedGraph> captured;  // null: what comes is waiting
  int64_t enqueued = 0, done = 0;
};
struct EmulatedEvent {
  std::shared_ptr<EmulatedStream> stream;  // that it was last recorded on
  int64_t place = 0;                       // of it: so much must be done
  double seconds = 0;
  int64_t warp_steps = 0;  // of all kernels before it, where they are counted
};

class EmulatedDriver final : public GpuDriver {
 public:
  EmulatedDriver(const EmulatedGpu& of, GpuProperties properties)
      : of_(of), properties_(std::move(properties)) {
    properties_.name = "emulated";
    properties_.memory = of.memory;
    if (of.sms > 0) properties_.sms = of.sms;
    of_.turns.count_lanes = of_.turns.count_lanes || of.usage != nullptr;
  }
  // Streams whose work waits for each other's keep each other.
  ~EmulatedDriver() override {
    for (const auto& opened : opened_)
      if (const auto stream = opened.lock(); stream != nullptr)
        std::exchange(stream->waiting, {}).clear();
  }

  const GpuProperties& properties() const override { return properties_; }
  void make_current() override {}

  Result<void*> allocate(size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (static_cast<int64_t>(bytes) > of_.memory - device_.bytes)
      return static_cast<void*>(nullptr);
    return take(bytes, device_);
  }
  void free(void* memory) override {
    const std::lock_guard lock(mutex_);
    give(memory, device_);
  }
  int64_t free_bytes() override {
    const std::lock_guard lock(mutex_);
    return of_.memory - device_.bytes;
  }
  Result<GpuMemoryHandle> share(void* memory) override {
    const std::lock_guard lock(mutex_);
    return device_.of.at(memory).share();
  }
  Result<void*> open_shared(const GpuMemoryHandle& handle) override {
    if (handle.process == getpid()) return handle.address;
    RECMILL_ASSIGN_OR_RETURN(void* const memory, EmulatedMemory::open(handle));
    const std::lock_guard lock(mutex_);
    opened_memory_[memory] = handle;
    return memory;
  }
  void close_shared(void* memory) override {
    const std::lock_guard lock(mutex_);
    const auto opened = opened_memory_.extract(memory);
    if (!opened.empty()) EmulatedMemory::close(memory, opened.mapped());
  }
  Result<void*> allocate_pinned(size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (static_cast<int64_t>(bytes) > of_.pinned_memory - pinned_.bytes)
      return Status::Failed("pinned memory of " + std::to_string(bytes) +
                            " bytes: the host has no more");
    return take(bytes, pinned_);
  }
  void free_pinned(void* memory) override {
    const std::lock_guard lock(mutex_);
    give(memory, pinned_);
  }

  Result<Stream> open_stream(StreamPriority) override {
    const std::lock_guard lock(mutex_);
    auto stream = std::make_shared<EmulatedStream>();
    stream->driver = this;
    streams_[stream.get()] = stream;
    opened_.push_back(stream);
    return static_cast<Stream>(stream.get());
  }
  void close_stream(Stream stream) override {
    const std::lock_guard lock(mutex_);
    static_cast<void>(catch_up(*stream_of(stream)).ok());
    streams_.erase(stream);
  }

  Status copy(void* to, const void* from, size_t bytes, Stream stream) override {
    return enqueue(stream, [=] {
      std::memcpy(to, from, bytes);
      return true;
    });
  }
  Status fill(void* to, uint8_t byte, size_t bytes, Stream stream) override {
    return enqueue(stream, [=] {
      std::memset(to, byte, bytes);
      return true;
    });
  }
  Status launch(Function function, const Grid& grid, const void* arguments, size_t bytes,
                Stream stream) override {
    const auto* code = static_cast<const KernelCode*>(function);
    const auto* first = static_cast<const std::byte*>(arguments);
    return enqueue(stream, [=, this, kept = std::vector<std::byte>(first, first + bytes)] {
      const auto usage =
          emulation::run_kernel(code->name.c_str(), grid, code->emulated, kept.data(), of_.turns);
      if (!usage.ok()) return Result<bool>(usage.status());
      if (of_.usage != nullptr) *of_.usage += *usage;
      const Status fits =
          check_shared(code->name, static_cast<int64_t>(usage->shared_bytes), properties_);
      return fits.ok() ? Result<bool>(true) : Result<bool>(fits);
    });
  }
  Result<bool> is_done(Stream stream) override {
    const std::lock_guard lock(mutex_);
    if (stream_of(stream)->captured != nullptr) return Status::Failed("a graph is waited for");
    return catch_up(*stream_of(stream));
  }

  // Shared with what is enqueued: an event may be closed before it happens.
  Result<Event> open_event() override {
    return static_cast<Event>(new SharedEvent(std::make_shared<EmulatedEvent>()));
  }
  void close_event(Event event) override { delete static_cast<SharedEvent*>(event); }
  Status record(Event event, Stream stream) override {
    const SharedEvent of = *static_cast<SharedEvent*>(event);
    {
      const std::lock_guard lock(mutex_);
      if (stream_of(stream)->captured != nullptr) return Status::Failed("an event within a graph");
      of->stream = stream_of(stream);
      of->place = of->stream->enqueued;
    }
    return enqueue(stream, [this, of] {
      of->seconds = now();
      if (of_.usage != nullptr) of->warp_steps = of_.usage->warp_steps;
      return true;
    });
  }
  Status wait(Stream stream, Event event) override {
    const std::lock_guard lock(mutex_);
    if (stream_of(stream)->captured != nullptr) return Status::Failed("an event within a graph");
    const EmulatedEvent at = **static_cast<SharedEvent*>(event);
    if (at.stream == nullptr) return {};  // never recorded: as CUDA has it
    return enqueue(stream, [this, at] { return catch_up(*at.stream, at.place); });
  }
  Result<bool> has_happened(Event event) override {
    const std::lock_guard lock(mutex_);
    const EmulatedEvent& at = **static_cast<SharedEvent*>(event);
    if (at.stream == nullptr) return true;
    return catch_up(*at.stream, at.place);
  }
  Result<double> seconds_between(Event first, Event last) override {
    const auto &begin = **static_cast<SharedEvent*>(first),
               &end = **static_cast<SharedEvent*>(last);
    if (of_.usage == nullptr) return end.seconds - begin.seconds;
    constexpr double kSchedulers = 4;
    return static_cast<double>(end.warp_steps - begin.warp_steps) * 1e-9 /
           (kSchedulers * properties_.sms);
  }

  std::string give_up() override {
    const std::lock_guard lock(mutex_);
    if (failed_.ok()) failed_ = Status::Failed("what was enqueued has been given up");
    return "";
  }
  bool is_stuck() const override { return false; }  // what was given up does not begin

  Status begin_capture(Stream stream) override {
    const std::lock_guard lock(mutex_);
    auto& captured = stream_of(stream)->captured;
    RECMILL_CHECK(captured == nullptr, "a graph within a graph");
    captured = std::make_unique<EmulatedGraph>();
    return {};
  }
  Result<Graph> end_capture(Stream stream, const std::string&) override {
    const std::lock_guard lock(mutex_);
    return static_cast<Graph>(stream_of(stream)->captured.release());
  }
  Status launch(Graph graph, Stream stream) override {
    for (const Work& work : *static_cast<EmulatedGraph*>(graph))
      RECMILL_RETURN_IF_ERROR(enqueue(stream, work));
    return {};
  }
  void close_graph(Graph graph) override { delete static_cast<EmulatedGraph*>(graph); }

  Result<Function> load(const KernelCode& code) override {
    if (code.emulated == nullptr)
      return Status::Failed("kernel " + code.name + " was not compiled for the emulator");
    const std::lock_guard lock(mutex_);
    return static_cast<Function>(codes_.emplace_back(std::make_unique<KernelCode>(code)).get());
  }
  // Bounds of a launch are for compilers of a GPU's code alone.
  int most_threads(Function) override { return static_cast<int>(kMostThreads); }

  Status enqueue(Stream stream, Work work) {
    const std::lock_guard lock(mutex_);
    if (!failed_.ok()) return failed_;
    const auto of = stream_of(stream);
    if (of->captured != nullptr) {
      of->captured->push_back(std::move(work));
      return {};
    }
    of->waiting.push_back(std::move(work));
    ++of->enqueued;
    return of_.late ? Status() : catch_up(*of).status();
  }

 private:
  struct Taken {
    std::unordered_map<void*, EmulatedMemory> of;
    int64_t bytes = 0;
  };
  using SharedEvent = std::shared_ptr<EmulatedEvent>;

  static Result<void*> take(size_t bytes, Taken& taken) {
    RECMILL_ASSIGN_OR_RETURN(auto memory, EmulatedMemory::allocate(bytes));
    taken.bytes += static_cast<int64_t>(bytes);
    void* const address = memory.address();
    taken.of.emplace(address, std::move(memory));
    return address;
  }
  // What still waits may be for this memory, so it is kept then; CUDA waits here.
  void give(void* memory, Taken& taken) {
    auto given = taken.of.extract(memory);
    RECMILL_CHECK(!given.empty(), "memory that was not allocated here, or is free");
    taken.bytes -= static_cast<int64_t>(given.mapped().bytes());
    freed_later_.push_back(std::move(given.mapped()));
    if (finish()) freed_later_.clear();
  }
  std::shared_ptr<EmulatedStream> stream_of(Stream stream) const { return streams_.at(stream); }

  // Does what can be done; whether nothing is left that will be: an error is that of every later
  // call.
  bool finish() {
    bool is_done = true;
    for (const auto& [handle, stream] : streams_) {
      const auto caught_up = catch_up(*stream);
      is_done = is_done && (!caught_up.ok() || *caught_up);
    }
    return is_done;
  }
  // Does what is enqueued until `place` things are done; whether they are.
  Result<bool> catch_up(EmulatedStream& stream, int64_t place = INT64_MAX) {
    while (failed_.ok() && !stream.waiting.empty() && stream.done < place) {
      const auto happened = stream.waiting.front()();
      failed_ = happened.status();
      if (happened.ok() && !*happened) return false;
      stream.waiting.pop_front();
      ++stream.done;
    }
    if (!failed_.ok()) return failed_;
    return true;
  }

  EmulatedGpu of_;
  GpuProperties properties_;
  std::recursive_mutex mutex_;  // guards all below; what waits for an event runs other streams
  Taken device_, pinned_;
  std::vector<EmulatedMemory> freed_later_;
  std::unordered_map<void*, GpuMemoryHandle> opened_memory_;  // of other processes
  std::unordered_map<Stream, std::shared_ptr<EmulatedStream>> streams_;
  std::vector<std::weak_ptr<EmulatedStream>> opened_;  // ever: others may still wait for them
  std::vector<std::unique_ptr<KernelCode>> codes_;
  Status failed_;  // of the first that did
};

}  // namespace

Result<std::unique_ptr<GpuDriver>> make_emulated_driver(const EmulatedGpu& of) {
  RECMILL_ASSIGN_OR_RETURN(auto properties, gpu_of_architecture(of.architecture));
  return std::unique_ptr<GpuDriver>(new EmulatedDriver(of, std::move(properties)));
}

Status enqueue_on_emulated(GpuDriver::Stream stream, Work work) {
  return static_cast<EmulatedStream*>(stream)->driver->enqueue(stream, std::move(work));
}

}  // namespace recmill
