// SPDX-License-Identifier: Apache-2.0
// What a GPU is asked for, in the terms of CUDA's driver: the emulator answers as the driver does,
// so that all that is built on it is the same code on both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "device/gpu/gpu_properties.h"
#include "device/gpu/kernel_code.h"
#include "device/grid.h"

namespace recmill {

/// By which processes of one machine open each other's GPU memory. A value to be sent.
struct GpuMemoryHandle {
  int64_t process = 0;
  void* address = nullptr;  // there
  std::array<std::byte, 64> of_driver = {};
  bool operator==(const GpuMemoryHandle&) const = default;
};

/// Whose kernels' blocks a GPU begins first, of those that it has not begun.
enum class StreamPriority { normal, high };

/// Calls may come from any thread. What is enqueued on a stream happens in order, some time; an
/// error of it names the kernel, and is that of every later call.
class GpuDriver {  // More than eight functions: one for each of the driver's that is used.
 public:
  using Stream = void*;
  using Event = void*;
  using Function = void*;
  using Graph = void*;

  virtual ~GpuDriver() = default;
  virtual const GpuProperties& properties() const = 0;
  /// For libraries that take the GPU which is the calling thread's current one.
  virtual void make_current() = 0;

  /// Aligned to 256 bytes, of any content; null: there is not so much. Freed when nothing that is
  /// enqueued runs and no stream is captured, which may be later than free() returns: it does not
  /// wait for long.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  virtual int64_t free_bytes() = 0;
  /// Of memory that was allocated here, as long as it is.
  virtual Result<GpuMemoryHandle> share(void* memory) = 0;
  /// Where copies of this GPU's streams find it; in the process that has allocated it, where it is.
  virtual Result<void*> open_shared(const GpuMemoryHandle& handle) = 0;
  /// What open_shared() gave, before it is freed.
  virtual void close_shared(void* memory) = 0;
  /// Of the host, such as copies run from and to while the host goes on, and kernels reach over the
  /// bus at the same address; of any content.
  virtual Result<void*> allocate_pinned(size_t bytes) = 0;
  virtual void free_pinned(void* memory) = 0;

  virtual Result<Stream> open_stream(StreamPriority priority) = 0;
  virtual void close_stream(Stream stream) = 0;
  /// Between two places, each of the device or pinned.
  virtual Status copy(void* to, const void* from, size_t bytes, Stream stream) = 0;
  virtual Status fill(void* to, uint8_t byte, size_t bytes, Stream stream) = 0;
  /// `arguments`: the kernel's one struct; the caller's again when this returns.
  virtual Status launch(Function function, const Grid& grid, const void* arguments, size_t bytes,
                        Stream stream) = 0;
  /// Whether all that was enqueued has happened.
  virtual Result<bool> is_done(Stream stream) = 0;

  virtual Result<Event> open_event() = 0;
  virtual void close_event(Event event) = 0;
  /// The event comes after what is enqueued so far; `stream` goes on after an event as last
  /// recorded.
  virtual Status record(Event event, Stream stream) = 0;
  virtual Status wait(Stream stream, Event event) = 0;
  /// Whether it has, as last recorded.
  virtual Result<bool> has_happened(Event event) = 0;
  /// Between two events that have happened.
  virtual Result<double> seconds_between(Event first, Event last) = 0;

  /// Nobody waits any more for what is enqueued: it may never end. So nothing is freed from now on.
  /// What runs, as "kernel NAME" or "one of the kernels NAME, NAME"; empty where that is not known.
  virtual std::string give_up() = 0;
  /// Whether what was given up may still run: libraries that wait for it would hang.
  virtual bool is_stuck() const = 0;

  /// What is enqueued on the stream from now on does not happen, but becomes a graph. Copies, fills
  /// and kernels of this stream alone.
  virtual Status begin_capture(Stream stream) = 0;
  /// No more of it, in any case. Fails where something was enqueued that no graph can have. Errors
  /// of what is launched later say `name`, as that of a kernel.
  virtual Result<Graph> end_capture(Stream stream, const std::string& name) = 0;
  /// Enqueues all that was captured, with the arguments that it had then.
  virtual Status launch(Graph graph, Stream stream) = 0;
  /// As memory is freed.
  virtual void close_graph(Graph graph) = 0;

  /// The kernel of that code, ready to run; it stays so.
  virtual Result<Function> load(const KernelCode& code) = 0;
  /// Threads of a block that it may be launched with.
  virtual int most_threads(Function function) = 0;
};

}  // namespace recmill
