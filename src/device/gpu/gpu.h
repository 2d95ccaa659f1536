// SPDX-License-Identifier: Apache-2.0
// A GPU as stores and kernels use it: memory that is accounted for, streams, and the one launcher.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "device/gpu/gpu_driver.h"

namespace recmill {

class Gpu;
class GpuEvent;
class GpuGraph;

/// Where memory is that a GPU's kernels read and write: its own, or pinned memory of the host,
/// which they reach over the bus.
enum class GpuMemory { device, host };

/// Memory that a GPU reaches: move-only, freed at the end. The Gpu outlives it, and what is
/// enqueued on it.
class GpuBuffer {
 public:
  GpuBuffer() = default;
  ~GpuBuffer() { release(); }
  GpuBuffer(GpuBuffer&& other) noexcept { *this = std::move(other); }
  GpuBuffer& operator=(GpuBuffer&& other) noexcept;
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  size_t size() const { return size_; }  // bytes
  /// An address for kernels; of GpuMemory::host the host's own too, once they are done.
  template <typename T>
  T* address() const {
    return static_cast<T*>(memory_);
  }

 private:
  friend class Gpu;
  void release();
  GpuDriver* driver_ = nullptr;
  void* memory_ = nullptr;
  size_t size_ = 0;
  bool pinned_ = false;
};

/// Memory of the host that copies to and from the GPU run beside.
class PinnedBuffer {
 public:
  size_t size() const { return buffer_.size(); }
  template <typename T>
  std::span<T> as() const {
    return {buffer_.address<T>(), buffer_.size() / sizeof(T)};
  }

 private:
  friend class Gpu;
  GpuBuffer buffer_;
};

/// An ordered queue of work on one GPU.
class GpuStream {
 public:
  GpuStream() = default;
  ~GpuStream() { release(); }
  GpuStream(GpuStream&& other) noexcept { *this = std::move(other); }
  GpuStream& operator=(GpuStream&& other) noexcept;
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  /// `bytes` from `from_at` of one to `to_at` of the other.
  Status to_device(GpuBuffer& to, const PinnedBuffer& from, size_t bytes, size_t to_at = 0,
                   size_t from_at = 0);
  Status to_host(PinnedBuffer& to, const GpuBuffer& from, size_t bytes, size_t to_at = 0,
                 size_t from_at = 0);
  Status copy(GpuBuffer& to, const GpuBuffer& from, size_t bytes);
  Status zero(GpuBuffer& memory);

  /// Whether all of it has happened. Fails as it did, naming the kernel.
  Result<bool> is_done();
  /// Returns when all of it has happened. Fails as it did, naming the kernel; where the time limit
  /// passes, those that run: nothing is freed from then on.
  Status synchronize();
  /// What is enqueued from now on comes after all that is enqueued on `other` so far.
  Status wait_for(GpuStream& other);
  /// The same after an event, at once where it was never recorded.
  Status wait_for(const GpuEvent& event);
  /// What `enqueue` enqueues here does not happen, but becomes a graph. Copies, fills and kernels
  /// of this stream alone, without a wait, so not in synchronous mode. Fails as `enqueue`, and
  /// where something of that is what no graph can have; `name` is said of it.
  Result<GpuGraph> capture(const std::string& name, const std::function<Status()>& enqueue);
  /// Enqueues what was captured: with the arguments that it had then, and with what now is in
  /// the memory that it reads.
  Status launch(const GpuGraph& graph);
  /// For libraries that enqueue work of their own.
  GpuDriver::Stream handle() const { return stream_; }

 private:
  friend class Gpu;
  friend class GpuEvent;
  friend class GpuTimer;
  void release();
  Gpu* gpu_ = nullptr;
  GpuDriver::Stream stream_ = nullptr;
  GpuDriver::Event event_ = nullptr;
  std::string launched_ = "none";  // the last kernel
};

/// A place in a stream's work that others can wait for.
class GpuEvent {
 public:
  GpuEvent() = default;
  ~GpuEvent() { release(); }
  GpuEvent(GpuEvent&& other) noexcept { *this = std::move(other); }
  GpuEvent& operator=(GpuEvent&& other) noexcept;
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  /// Behind all that is enqueued so far. The stream outlives what waits for the event.
  Status record(GpuStream& stream);
  /// Returns when all before it has happened; at once where it was never recorded. Fails as
  /// GpuStream::synchronize(). With a pause it leaves the core to others between looks.
  Status synchronize(std::chrono::microseconds pause = {});

 private:
  friend class Gpu;
  friend class GpuStream;
  void release();
  Gpu* gpu_ = nullptr;
  GpuDriver::Event event_ = nullptr;
  GpuDriver::Stream stream_ = nullptr;  // that it was recorded on
  std::string launched_ = "none";       // the last kernel before it
};

/// Work of a stream that is enqueued by one call, as often as it is launched: for many small
/// kernels which take longer to be launched one by one than to run. The memory that they name
/// outlives it.
class GpuGraph {
 public:
  GpuGraph() = default;
  ~GpuGraph() { release(); }
  GpuGraph(GpuGraph&& other) noexcept { *this = std::move(other); }
  GpuGraph& operator=(GpuGraph&& other) noexcept;
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

 private:
  friend class GpuStream;
  void release();
  GpuDriver* driver_ = nullptr;
  GpuDriver::Graph graph_ = nullptr;
  std::string name_;
};

/// The time between two places of a stream's work, by the GPU's own clock.
class GpuTimer {
 public:
  GpuTimer() = default;
  ~GpuTimer() { release(); }
  GpuTimer(GpuTimer&& other) noexcept { *this = std::move(other); }
  GpuTimer& operator=(GpuTimer&& other) noexcept;
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  Status start(GpuStream& stream);
  Status stop(GpuStream& stream);
  /// Once the stream is done.
  Result<double> seconds() const;

 private:
  friend class Gpu;
  void release();
  GpuDriver* driver_ = nullptr;
  GpuDriver::Event first_ = nullptr, last_ = nullptr;
};

/// A kernel that is ready to be launched.
struct GpuKernel {
  std::string name;
  GpuDriver::Function function = nullptr;
  int most_threads = 0;         // of a block
  int most_dynamic_shared = 0;  // bytes of a block that launches may ask for
};

struct GpuOptions {
  bool synchronous = false;    // each kernel ends before the next is launched: errors name it
  double kernel_seconds = 60;  // that synchronize() waits, at most
  bool check_nan = false;      // that check_nan() looks
};

class Gpu {
 public:
  Gpu(std::unique_ptr<GpuDriver> driver, GpuOptions options)
      : driver_(std::move(driver)), options_(options) {}

  const GpuProperties& properties() const { return driver_->properties(); }
  const GpuOptions& options() const { return options_; }
  GpuDriver& driver() { return *driver_; }

  /// Memory of any content. Fails, naming `what` and what is free, where there is not so much.
  Result<GpuBuffer> allocate(size_t bytes, const std::string& what,
                             GpuMemory where = GpuMemory::device);
  Result<PinnedBuffer> allocate_pinned(size_t bytes, const std::string& what);
  Result<GpuStream> open_stream(StreamPriority priority = StreamPriority::normal);
  Result<GpuEvent> open_event();
  Result<GpuTimer> open_timer();
  /// Fails as the driver, naming the kernel.
  Result<GpuKernel> load(const KernelCode& code);

  /// Enqueues the kernel with its one struct. Fails, naming it, on a grid that the GPU does not
  /// have, on more threads or shared memory of a block than the kernel was compiled or loaded for;
  /// in synchronous mode as the kernel does.
  template <class Arguments>
  Status launch(const GpuKernel& kernel, const Grid& grid, const Arguments& arguments,
                GpuStream& stream) {
    return launch(kernel, grid, &arguments, sizeof arguments, stream);
  }

  /// Where options say so, fails when one of `rows` rows of `dim` floats, `stride` floats from each
  /// other, which the kernel wrote as its last work of the stream, has a NaN. `what` they are.
  Status check_nan(const GpuKernel& kernel, const float* floats, int64_t rows, int64_t dim,
                   int64_t stride, const std::string& what, GpuStream& stream);

 private:
  Status launch(const GpuKernel& kernel, const Grid& grid, const void* arguments, size_t bytes,
                GpuStream& stream);

  const std::unique_ptr<GpuDriver> driver_;
  const GpuOptions options_;
};

}  // namespace recmill
