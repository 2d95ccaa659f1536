// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/cuda_driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device/gpu/cuda_api.h"

namespace recmill {
namespace {

constexpr int kLeastVersion = 13000;

std::atomic<bool> kernel_was_given_up = false;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The functions of a library, or which one it lacks.
Result<cuda::Api> find_api(void* library, const std::string& name) {
  cuda::Api api;
  std::string missing;
  const auto find = [&](auto& function, const char* symbol) {
    void* found = dlsym(library, symbol);
    if (found == nullptr && missing.empty()) missing = symbol;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(api.init, "cuInit");
  find(api.driver_version, "cuDriverGetVersion");
  find(api.error_string, "cuGetErrorString");
  find(api.device_count, "cuDeviceGetCount");
  find(api.device, "cuDeviceGet");
  find(api.device_name, "cuDeviceGetName");
  find(api.device_id, "cuDeviceGetUuid_v2");
  find(api.device_attribute, "cuDeviceGetAttribute");
  find(api.device_memory, "cuDeviceTotalMem_v2");
  find(api.retain_context, "cuDevicePrimaryCtxRetain");
  find(api.release_context, "cuDevicePrimaryCtxRelease_v2");
  find(api.set_context, "cuCtxSetCurrent");
  find(api.allocate, "cuMemAlloc_v2");
  find(api.free, "cuMemFree_v2");
  find(api.memory_info, "cuMemGetInfo_v2");
  find(api.share, "cuIpcGetMemHandle");
  find(api.open_shared, "cuIpcOpenMemHandle_v2");
  find(api.close_shared, "cuIpcCloseMemHandle");
  find(api.allocate_host, "cuMemHostAlloc");
  find(api.address_of_host, "cuMemHostGetDevicePointer_v2");
  find(api.free_host, "cuMemFreeHost");
  find(api.open_stream, "cuStreamCreateWithPriority");
  find(api.close_stream, "cuStreamDestroy_v2");
  find(api.query_stream, "cuStreamQuery");
  find(api.wait_event, "cuStreamWaitEvent");
  find(api.copy, "cuMemcpyAsync");
  find(api.fill, "cuMemsetD8Async");
  find(api.open_event, "cuEventCreate");
  find(api.close_event, "cuEventDestroy_v2");
  find(api.record, "cuEventRecord");
  find(api.query_event, "cuEventQuery");
  find(api.elapsed, "cuEventElapsedTime");
  find(api.begin_capture, "cuStreamBeginCapture_v2");
  find(api.end_capture, "cuStreamEndCapture");
  find(api.instantiate, "cuGraphInstantiateWithFlags");
  find(api.launch_graph, "cuGraphLaunch");
  find(api.close_executable, "cuGraphExecDestroy");
  find(api.close_graph, "cuGraphDestroy");
  find(api.load_module, "cuModuleLoadData");
  find(api.function, "cuModuleGetFunction");
  find(api.set_function, "cuFuncSetAttribute");
  find(api.function_attribute, "cuFuncGetAttribute");
  find(api.launch, "cuLaunchKernel");
  if (!missing.empty()) return Status::Failed("the driver " + name + " has no " + missing);
  return api;
}

/// What all drivers of the process share: an error of a kernel is told to any driver of its GPU,
/// and memory is freed when nothing runs and no stream is captured. CUDA waits for what runs, of
/// GPUs that reach each other's memory on all of them, for ever where a kernel does not end; and
/// such a wait breaks captures.
struct SharedState {
  struct OfStream {
    cuda::Handle context = nullptr;
    std::vector<std::string> kernels;  // launched since it was done
  };
  std::mutex mutex;  // guards the rest, and is held while nothing is waited for
  std::unordered_map<GpuDriver::Stream, OfStream> streams;  // closed ones until they are done
  std::set<GpuDriver::Stream> captured;
  std::vector<std::function<void()>> put_off;  // until nothing runs
  bool waited_in_vain = false;                 // for that, by one who frees, since it was so last
  int catching_up = 0;                         // threads that do what was put off
  std::condition_variable caught_up;
  std::atomic<bool> given_up = false;
  std::string given_up_kernels;  // written before that

  static std::shared_ptr<SharedState> of_process() {
    static std::mutex mutex;
    static std::weak_ptr<SharedState> state;
    const std::lock_guard lock(mutex);
    auto shared = state.lock();
    if (shared == nullptr) state = shared = std::make_shared<SharedState>();
    return shared;
  }
};

/// "kernel a", "one of the kernels a, b"; empty: of none.
std::string named(const std::set<std::string>& kernels) {
  std::string all;
  for (const std::string& name : kernels) all += (all.empty() ? "" : ", ") + name;
  if (kernels.size() > 1) return "one of the kernels " + all;
  return all.empty() ? "" : "kernel " + all;
}

class CudaDriver final : public GpuDriver {
 public:
  CudaDriver(void* library, const cuda::Api& api, double free_seconds)
      : library_(library), api_(api), free_seconds_(free_seconds) {}
  ~CudaDriver() override {
    if (shared_ != nullptr) {
      enter();
      // What still runs keeps the context, and the process's end releases it: who waits may wait
      // for ever.
      if (!wait_for_put_off(free_seconds_) || shared_->given_up || !is_idle()) return;
    }
    if (context_ != nullptr) api_.release_context(device_);
    dlclose(library_);
  }

  Result<int> count_gpus() {
    int version = 0, count = 0;
    if (const auto error = api_.driver_version(&version); error != 0)
      return failed("the driver's version", error);
    if (version < kLeastVersion)
      return Status::Failed("the driver is for CUDA " + version_text(version) + ": " +
                            version_text(kLeastVersion) + " is the least");
    if (const auto error = api_.init(0); error != 0) return failed("the driver", error);
    if (const auto error = api_.device_count(&count); error != 0) return failed("GPUs", error);
    return count;
  }

  Status open(const CudaGpu& of) {
    RECMILL_ASSIGN_OR_RETURN(const int count, count_gpus());
    const int number = of.wraps && count > 0 ? of.number % count : of.number;
    if (number >= count)
      return Status::Failed("GPU " + std::to_string(number) + ": the machine has " +
                            std::to_string(count));
    properties_.number = number;
    if (const auto error = api_.device(&device_, number); error != 0) return failed("GPU", error);
    if (const auto error = api_.retain_context(&context_, device_); error != 0)
      return failed("GPU " + std::to_string(number), error);
    shared_ = SharedState::of_process();
    return read_properties();
  }

  const GpuProperties& properties() const override { return properties_; }
  void make_current() override { enter(); }

  Result<void*> allocate(size_t bytes) override {
    enter();
    cuda::Address address = 0;
    const auto error =
        with_what_is_freed([&] { return api_.allocate(&address, bytes == 0 ? 1 : bytes); });
    if (error == cuda::kOutOfMemory) return static_cast<void*>(nullptr);
    RECMILL_RETURN_IF_ERROR(checked("device memory", error));
    return reinterpret_cast<void*>(address);
  }
  void free(void* memory) override {
    when_idle([free = api_.free, memory] { free(reinterpret_cast<cuda::Address>(memory)); });
  }
  int64_t free_bytes() override {
    enter();
    size_t free = 0, all = 0;
    return api_.memory_info(&free, &all) == 0 ? static_cast<int64_t>(free) : 0;
  }
  // A process may not open what it has itself.
  Result<GpuMemoryHandle> share(void* memory) override {
    enter();
    cuda::MemoryHandle handle = {};
    RECMILL_RETURN_IF_ERROR(checked("device memory for other processes",
                                    api_.share(&handle, reinterpret_cast<cuda::Address>(memory))));
    GpuMemoryHandle shared{getpid(), memory, {}};
    std::ranges::copy(handle.bytes, shared.of_driver.begin());
    return shared;
  }
  Result<void*> open_shared(const GpuMemoryHandle& handle) override {
    if (handle.process == getpid()) return handle.address;
    enter();
    cuda::MemoryHandle of_driver;
    std::ranges::copy(handle.of_driver, of_driver.bytes);
    cuda::Address address = 0;
    RECMILL_RETURN_IF_ERROR(checked("device memory of another process",
                                    api_.open_shared(&address, of_driver, cuda::kLazyPeerAccess)));
    auto* const memory = reinterpret_cast<void*>(address);
    const std::lock_guard lock(mutex_);
    opened_.insert(memory);
    return memory;
  }
  void close_shared(void* memory) override {
    enter();
    const std::lock_guard lock(mutex_);
    const auto found = opened_.find(memory);
    if (found == opened_.end()) return;  // its own process's
    opened_.erase(found);
    if (shared_->given_up) return;
    api_.close_shared(reinterpret_cast<cuda::Address>(memory));
  }
  Result<void*> allocate_pinned(size_t bytes) override {
    enter();
    void* memory = nullptr;
    const std::string what = "pinned memory of " + std::to_string(bytes) + " bytes";
    auto error = with_what_is_freed([&] {
      return api_.allocate_host(&memory, bytes == 0 ? 1 : bytes, cuda::kPortable | cuda::kMapped);
    });
    RECMILL_RETURN_IF_ERROR(checked(what, error));
    // The same, as addresses are unified on all systems that Recmill runs on.
    cuda::Address address = 0;
    error = api_.address_of_host(&address, memory, 0);
    if (error == 0 && reinterpret_cast<void*>(address) == memory) return memory;
    api_.free_host(memory);
    return error != 0 ? checked(what, error)
                      : Status::Failed(what + ": the GPU has it at another address");
  }
  void free_pinned(void* memory) override {
    when_idle([free = api_.free_host, memory] { free(memory); });
  }

  Result<Stream> open_stream(StreamPriority priority) override {
    enter();
    Stream stream = nullptr;
    const int number = priority == StreamPriority::high ? -1 : 0;  // the lower, the sooner
    RECMILL_RETURN_IF_ERROR(
        checked("a stream", api_.open_stream(&stream, cuda::kNonBlocking, number)));
    const std::lock_guard lock(shared_->mutex);
    shared_->streams[stream] = {context_, {}};
    return stream;
  }
  // What is enqueued on it still runs then: it is known until that is done.
  void close_stream(Stream stream) override {
    enter();
    const auto close = [shared = shared_.get(), close = api_.close_stream, stream] {
      const std::lock_guard lock(shared->mutex);
      shared->streams.erase(stream);
      close(stream);
    };
    {
      const std::lock_guard lock(shared_->mutex);
      if (is_running(stream)) {
        if (!shared_->given_up) shared_->put_off.push_back(in_context(close));
        return;
      }
    }
    close();
  }
  Status copy(void* to, const void* from, size_t bytes, Stream stream) override {
    enter();
    return checked("a copy", api_.copy(reinterpret_cast<cuda::Address>(to),
                                       reinterpret_cast<cuda::Address>(from), bytes, stream));
  }
  Status fill(void* to, uint8_t byte, size_t bytes, Stream stream) override {
    enter();
    return checked("a fill", api_.fill(reinterpret_cast<cuda::Address>(to), byte, bytes, stream));
  }
  Status launch(Function function, const Grid& grid, const void* arguments, size_t,
                Stream stream) override {
    enter();
    const auto* kernel = static_cast<const Kernel*>(function);
    void* parameters[] = {const_cast<void*>(arguments)};
    const auto [blocks, threads, shared] = grid;
    const auto error =
        api_.launch(kernel->function, blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z,
                    static_cast<unsigned>(shared), stream, parameters, nullptr);
    RECMILL_RETURN_IF_ERROR(checked("kernel " + kernel->name, error));
    add_launched(kernel->name, stream);
    return {};
  }
  Result<bool> is_done(Stream stream) override {
    enter();
    const auto error = api_.query_stream(stream);
    if (error == cuda::kNotReady) return not_yet();
    RECMILL_RETURN_IF_ERROR(checked("a stream", error));
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->streams.at(stream).kernels.clear();
    }
    static_cast<void>(catch_up());
    return true;
  }

  Result<Event> open_event() override {
    enter();
    Event event = nullptr;
    RECMILL_RETURN_IF_ERROR(checked("an event", api_.open_event(&event, 0)));
    return event;
  }
  void close_event(Event event) override {
    enter();
    api_.close_event(event);
  }
  Status record(Event event, Stream stream) override {
    enter();
    return checked("an event", api_.record(event, stream));
  }
  Status wait(Stream stream, Event event) override {
    enter();
    return checked("an event", api_.wait_event(stream, event, 0));
  }
  Result<bool> has_happened(Event event) override {
    enter();
    const auto error = api_.query_event(event);
    if (error == cuda::kNotReady) return not_yet();
    RECMILL_RETURN_IF_ERROR(checked("an event", error));
    return true;
  }
  Result<double> seconds_between(Event first, Event last) override {
    enter();
    float milliseconds = 0;
    RECMILL_RETURN_IF_ERROR(
        checked("the time between two events", api_.elapsed(&milliseconds, first, last)));
    return milliseconds / 1e3;
  }

  std::string give_up() override {
    enter();
    const std::lock_guard lock(shared_->mutex);
    std::set<std::string> running;
    for (const auto& [stream, of] : shared_->streams)
      if (of.context == context_ && is_running(stream))
        running.insert(of.kernels.begin(), of.kernels.end());
    if (!shared_->given_up) shared_->given_up_kernels = named(running);
    shared_->given_up = kernel_was_given_up = true;
    shared_->put_off.clear();
    shared_->caught_up.notify_all();
    return named(running);
  }
  bool is_stuck() const override { return shared_->given_up; }

  Status begin_capture(Stream stream) override {
    enter();
    std::unique_lock lock(shared_->mutex);
    shared_->caught_up.wait(lock,
                            [this] { return shared_->catching_up == 0 || shared_->given_up; });
    const auto error = api_.begin_capture(stream, cuda::kCaptureRelaxed);
    if (error == 0) shared_->captured.insert(stream);
    lock.unlock();
    return checked("a graph", error);
  }
  Result<Graph> end_capture(Stream stream, const std::string& name) override {
    enter();
    cuda::Handle captured = nullptr;
    RECMILL_RETURN_IF_ERROR(checked("what is enqueued", end_capture(stream, captured)));
    static_cast<void>(catch_up());
    auto graph = std::make_unique<CapturedGraph>();
    graph->name = name;
    const auto error = api_.instantiate(&graph->executable, captured, 0);
    api_.close_graph(captured);
    RECMILL_RETURN_IF_ERROR(checked("its graph", error));
    return static_cast<Graph>(graph.release());
  }
  Status launch(Graph graph, Stream stream) override {
    enter();
    const auto* const of = static_cast<const CapturedGraph*>(graph);
    RECMILL_RETURN_IF_ERROR(checked(of->name, api_.launch_graph(of->executable, stream)));
    add_launched(of->name, stream);
    return {};
  }
  void close_graph(Graph graph) override {
    const std::unique_ptr<CapturedGraph> of(static_cast<CapturedGraph*>(graph));
    when_idle([close = api_.close_executable, executable = of->executable] { close(executable); });
  }

  Result<Function> load(const KernelCode& code) override {
    enter();
    cuda::Handle module = nullptr;
    auto kernel = std::make_unique<Kernel>();
    kernel->name = code.name;
    if (code.cubin.empty())
      return Status::Failed("kernel " + code.name + " was not compiled for " + architecture());
    auto error = api_.load_module(&module, code.cubin.data());
    if (error == cuda::kNoImage)
      return Status::Failed("kernel " + code.name + " was compiled for another architecture than " +
                            architecture());
    if (error == 0) error = api_.function(&kernel->function, module, code.name.c_str());
    int shared = 0;
    if (error == 0) error = api_.function_attribute(&shared, cuda::kShared, kernel->function);
    if (error == 0)
      error = api_.function_attribute(&kernel->most_threads, cuda::kMostThreads, kernel->function);
    RECMILL_RETURN_IF_ERROR(checked("kernel " + code.name, error));
    RECMILL_RETURN_IF_ERROR(
        check_shared(code.name, int64_t{shared} + code.most_dynamic_shared, properties_));
    RECMILL_RETURN_IF_ERROR(checked(
        "kernel " + code.name,
        api_.set_function(kernel->function, cuda::kMostDynamicShared, code.most_dynamic_shared)));
    const std::lock_guard lock(mutex_);
    return static_cast<Function>(kernels_.emplace_back(std::move(kernel)).get());
  }
  int most_threads(Function function) override {
    return static_cast<const Kernel*>(function)->most_threads;
  }

 private:
  struct Kernel {
    std::string name;
    cuda::Handle function = nullptr;
    int most_threads = 0;  // of a block
  };

  struct CapturedGraph {
    std::string name;
    cuda::Handle executable = nullptr;
  };

  /// Whoever does it later may be another GPU's thread.
  std::function<void()> in_context(std::function<void()> what) const {
    return [set = api_.set_context, context = context_, what = std::move(what)] {
      set(context);
      what();
    };
  }
  /// Does what may be done when nothing runs. As long as that takes not too long, it is waited for,
  /// but where something else has been waited for in vain; given up, it is left.
  void when_idle(std::function<void()> what) {
    enter();
    bool waits = true;
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->given_up) return;
      waits = shared_->captured.empty() /* perhaps by this thread */ && !shared_->waited_in_vain;
      shared_->put_off.push_back(in_context(std::move(what)));
    }
    if (!waits) static_cast<void>(catch_up());
    if (!waits || wait_for_put_off(free_seconds_)) return;
    const std::lock_guard lock(shared_->mutex);
    shared_->waited_in_vain = true;
  }
  /// What takes memory; where there is too little of it, again once all that was put off is freed.
  cuda::Result with_what_is_freed(const std::function<cuda::Result()>& take) {
    constexpr double kPatience = 60;  // to free_seconds_: a run would end here
    const auto error = take();
    return error == cuda::kOutOfMemory && wait_for_put_off(kPatience * free_seconds_) ? take()
                                                                                      : error;
  }
  /// Whether all is done that was put off.
  bool wait_for_put_off(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    while (!catch_up()) {
      if (Clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
  }
  /// Does what was put off, if nothing runs; whether it is done.
  bool catch_up() {
    std::unique_lock lock(shared_->mutex);
    if (shared_->put_off.empty()) return shared_->catching_up == 0;
    if (!shared_->captured.empty()) return false;
    for (const auto& [stream, of] : shared_->streams)
      if (is_running(stream)) return false;
    const auto due = std::exchange(shared_->put_off, {});
    shared_->waited_in_vain = false;
    ++shared_->catching_up;
    lock.unlock();
    for (const auto& what : due) what();
    enter();
    lock.lock();
    --shared_->catching_up;
    shared_->caught_up.notify_all();
    return shared_->catching_up == 0;
  }
  /// Under the lock. To ask it of a captured stream, whose work waits for its graph, breaks that.
  bool is_running(Stream stream) const {
    return !shared_->captured.contains(stream) && api_.query_stream(stream) == cuda::kNotReady;
  }
  /// Whether nothing of this GPU runs.
  bool is_idle() {
    const std::lock_guard lock(shared_->mutex);
    return std::ranges::none_of(shared_->streams, [this](const auto& stream) {
      return stream.second.context == context_ && is_running(stream.first);
    });
  }
  cuda::Result end_capture(Stream stream, cuda::Handle& captured) {
    const std::lock_guard lock(shared_->mutex);
    shared_->captured.erase(stream);
    return api_.end_capture(stream, &captured);
  }
  /// Of what does not end nobody waits for the end.
  Result<bool> not_yet() const {
    if (!shared_->given_up) return false;
    const std::string& kernels = shared_->given_up_kernels;
    return Status::Failed((kernels.empty() ? "what was enqueued" : kernels) + " has been given up");
  }

  void add_launched(const std::string& name, Stream stream) {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->captured.contains(stream)) return;
    auto& names = shared_->streams.at(stream).kernels;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  /// The context is each thread's own affair.
  void enter() const { api_.set_context(context_); }
  std::string architecture() const { return "sm_" + std::to_string(properties_.compute); }

  Status failed(const std::string& what, cuda::Result error) const {
    const char* text = nullptr;
    if (api_.error_string(error, &text) != 0 || text == nullptr) text = "unknown error";
    return Status::Failed(what + ": " + text + " (CUDA error " + std::to_string(error) + ")");
  }
  /// An error of kernels is said by any later call: it names those that may have been running.
  Status checked(const std::string& what, cuda::Result error) {
    if (error == 0) return {};
    if (!cuda::is_of_kernels(error)) return failed(what, error);
    const std::lock_guard lock(shared_->mutex);
    std::set<std::string> kernels;
    for (const auto& [stream, of] : shared_->streams)
      if (of.context == context_) kernels.insert(of.kernels.begin(), of.kernels.end());
    return failed(kernels.empty() ? what : named(kernels), error);
  }

  Status read_properties() {
    char name[256] = {};
    size_t memory = 0;
    auto error = api_.device_name(name, sizeof name, device_);
    if (api_.device_id(properties_.id.data(), device_) != 0) properties_.id = {};
    if (error == 0) error = api_.device_memory(&memory, device_);
    const auto read = [&](cuda::Attribute attribute) {
      int value = 0;
      if (error == 0) error = api_.device_attribute(&value, attribute, device_);
      return value;
    };
    properties_.name = name;
    properties_.memory = static_cast<int64_t>(memory);
    properties_.compute = read(cuda::kComputeMajor) * 10 + read(cuda::kComputeMinor);
    properties_.sms = read(cuda::kSms);
    properties_.most_threads = read(cuda::kThreadsPerSm);
    properties_.most_blocks = read(cuda::kBlocksPerSm);
    properties_.registers = read(cuda::kRegistersPerSm);
    properties_.shared = read(cuda::kSharedPerSm);
    properties_.shared_of_block = read(cuda::kSharedOfBlockOptIn);
    properties_.shared_reserved = read(cuda::kSharedReserved);
    // Each clock moves two words.
    properties_.memory_rate = 2e3 * read(cuda::kMemoryKilohertz) * read(cuda::kMemoryBits) / 8;
    return error == 0 ? Status() : failed("what the GPU is", error);
  }

  void* const library_;
  const cuda::Api api_;
  const double free_seconds_;
  cuda::Device device_ = 0;
  cuda::Handle context_ = nullptr;
  std::shared_ptr<SharedState> shared_;
  GpuProperties properties_;
  std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::unordered_multiset<void*> opened_;  // of other processes
};

/// With no GPU open yet.
Result<std::unique_ptr<CudaDriver>> load_driver(const std::string& name,
                                                double free_seconds = CudaGpu().free_seconds) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status::Failed("no CUDA driver: " + std::string(dlerror()));
  auto api = find_api(library, name);
  if (!api.ok()) {
    dlclose(library);
    return api.status();
  }
  return std::make_unique<CudaDriver>(library, *api, free_seconds);
}

}  // namespace

Result<std::unique_ptr<GpuDriver>> make_cuda_driver(const CudaGpu& of) {
  RECMILL_ASSIGN_OR_RETURN(auto driver, load_driver(of.library, of.free_seconds));
  RECMILL_RETURN_IF_ERROR(driver->open(of));
  return std::unique_ptr<GpuDriver>(std::move(driver));
}

bool cuda_kernel_was_given_up() {
  return kernel_was_given_up;
}

Result<int> count_cuda_gpus(const std::string& library) {
  RECMILL_ASSIGN_OR_RETURN(const auto driver, load_driver(library));
  return driver->count_gpus();
}

}  // namespace recmill
