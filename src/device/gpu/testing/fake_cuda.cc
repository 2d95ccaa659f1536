// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1, of the functions that CudaDriver calls: a GPU without memory limits
// whose kernels run on the emulator, each as soon as it is launched. What it is asked to be wrong
// about, tests write into fake_cuda.
#include "device/gpu/testing/fake_cuda.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/gpu/cuda_api.h"

using recmill::cuda::Address;
using recmill::cuda::Attribute;
using recmill::cuda::Device;
using recmill::cuda::Handle;
using recmill::testing::FakeImage;

extern "C" recmill::testing::FakeCuda fake_cuda;
recmill::testing::FakeCuda fake_cuda;

namespace {

using FakeGraph = std::vector<std::function<int()>>;
struct FakeStream {
  bool is_captured = false;
  FakeGraph captured;
};

/// Of no stream: the default one, which is never captured.
bool is_captured(Handle stream) {
  return stream != nullptr && static_cast<FakeStream*>(stream)->is_captured;
}

/// At once, but where it is captured.
int enqueue(Handle stream, std::function<int()> work) {
  if (!is_captured(stream)) return work();
  static_cast<FakeStream*>(stream)->captured.push_back(std::move(work));
  return 0;
}

// CUDA_ERROR_INVALID_VALUE, STREAM_CAPTURE_UNSUPPORTED and STREAM_CAPTURE_INVALIDATED.
constexpr int kInvalidValue = 1, kCaptured = 900, kBrokenCapture = 901;
int captured_streams = 0;
bool capture_is_broken = false;

std::unordered_map<Address, size_t> allocated;  // bytes
size_t free_bytes() {
  size_t free = fake_cuda.most_bytes;
  for (const auto& [address, bytes] : allocated) free -= bytes;
  return free;
}

std::unordered_map<void*, size_t> pinned;  // bytes
size_t pinned_bytes = 0;

/// A call that returns once all that is enqueued has happened; what is captured never does.
void wait_for_all() {
  fake_cuda.hung += fake_cuda.stuck ? 1 : 0;
  capture_is_broken = capture_is_broken || captured_streams > 0;
}
}  // namespace

extern "C" {

int cuInit(unsigned) {
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = fake_cuda.version;
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 719 ? "unspecified launch failure" : "some error";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = fake_cuda.gpus;
  return 0;
}
int cuDeviceGet(Device* device, int number) {
  *device = number;
  return 0;
}
int cuDeviceGetName(char* name, int size, Device) {
  std::strncpy(name, "fake GPU", static_cast<size_t>(size));
  return 0;
}
int cuDeviceGetUuid_v2(std::byte* id, Device number) {
  std::memset(id, 'a' + number, 16);
  return 0;
}
int cuDeviceGetAttribute(int* value, Attribute attribute, Device) {
  switch (attribute) {
    case recmill::cuda::kSms:
      *value = 4;
      break;
    case recmill::cuda::kMemoryKilohertz:
      *value = 1000000;
      break;
    case recmill::cuda::kMemoryBits:
      *value = 4096;
      break;
    case recmill::cuda::kThreadsPerSm:
      *value = 2048;
      break;
    case recmill::cuda::kComputeMajor:
      *value = 9;
      break;
    case recmill::cuda::kComputeMinor:
      *value = 0;
      break;
    case recmill::cuda::kSharedPerSm:
      *value = 228 << 10;
      break;
    case recmill::cuda::kRegistersPerSm:
      *value = 65536;
      break;
    case recmill::cuda::kSharedOfBlockOptIn:
      *value = 227 << 10;
      break;
    case recmill::cuda::kBlocksPerSm:
      *value = 32;
      break;
    case recmill::cuda::kSharedReserved:
      *value = 1024;
      break;
  }
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, Device) {
  *bytes = size_t{1} << 30;
  return 0;
}
int cuDevicePrimaryCtxRetain(Handle* context, Device number) {
  static char contexts[8];
  *context = &contexts[number];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(Device) {
  wait_for_all();
  return 0;
}
int cuCtxSetCurrent(Handle) {
  return 0;
}
int cuMemAlloc_v2(Address* address, size_t bytes) {
  if (bytes > free_bytes()) return recmill::cuda::kOutOfMemory;
  *address = reinterpret_cast<Address>(std::malloc(bytes));
  allocated[*address] = bytes;
  return 0;
}
int cuMemFree_v2(Address address) {
  if (fake_cuda.before_free != nullptr) fake_cuda.before_free();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  wait_for_all();
  std::free(reinterpret_cast<void*>(address));
  allocated.erase(address);
  ++fake_cuda.freed;
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* all) {
  *free = free_bytes();
  *all = fake_cuda.most_bytes;
  return 0;
}
int cuIpcGetMemHandle(recmill::cuda::MemoryHandle* handle, Address address) {
  std::memcpy(handle->bytes, &address, sizeof address);
  return 0;
}
int cuIpcOpenMemHandle_v2(Address* address, recmill::cuda::MemoryHandle handle, unsigned flags) {
  if (flags != recmill::cuda::kLazyPeerAccess) return 1;
  std::memcpy(address, handle.bytes, sizeof *address);
  ++fake_cuda.opened;
  return 0;
}
int cuIpcCloseMemHandle(Address) {
  --fake_cuda.opened;
  return 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  if (flags != (recmill::cuda::kPortable | recmill::cuda::kMapped)) return kInvalidValue;
  if (bytes > fake_cuda.most_pinned - pinned_bytes) return recmill::cuda::kOutOfMemory;
  *memory = std::malloc(bytes);
  pinned[*memory] = bytes;
  pinned_bytes += bytes;
  return 0;
}
int cuMemHostGetDevicePointer_v2(Address* address, void* memory, unsigned flags) {
  if (flags != 0) return kInvalidValue;
  *address = reinterpret_cast<Address>(memory) + (fake_cuda.unified ? 0 : 256);
  return 0;
}
int cuMemFreeHost(void* memory) {
  wait_for_all();
  pinned_bytes -= std::exchange(pinned[memory], 0);
  std::free(memory);
  return 0;
}
int cuStreamCreateWithPriority(Handle* stream, unsigned, int priority) {
  fake_cuda.priority = priority;
  *stream = new FakeStream;
  return 0;
}
int cuStreamDestroy_v2(Handle stream) {
  delete static_cast<FakeStream*>(stream);
  return 0;
}
int cuStreamQuery(Handle stream) {
  ++fake_cuda.queries;
  if (is_captured(stream)) {
    capture_is_broken = true;
    return kCaptured;
  }
  return fake_cuda.stuck ? recmill::cuda::kNotReady : fake_cuda.error;
}
int cuStreamWaitEvent(Handle, Handle, unsigned) {
  return fake_cuda.error;
}
int cuMemcpyAsync(Address to, Address from, size_t bytes, Handle stream) {
  return enqueue(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return fake_cuda.error;
  });
}
int cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, Handle stream) {
  return enqueue(stream, [=] {
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
    return fake_cuda.error;
  });
}
int cuStreamBeginCapture_v2(Handle stream, int) {
  static_cast<FakeStream*>(stream)->is_captured = true;
  ++captured_streams;
  return 0;
}
int cuStreamEndCapture(Handle stream, Handle* graph) {
  auto* const of = static_cast<FakeStream*>(stream);
  of->is_captured = false;
  --captured_streams;
  if (std::exchange(capture_is_broken, false)) return kBrokenCapture;
  *graph = new FakeGraph(std::exchange(of->captured, {}));
  return 0;
}
int cuGraphInstantiateWithFlags(Handle* executable, Handle graph, unsigned long long) {
  if (fake_cuda.no_graphs) return 801;
  *executable = new FakeGraph(*static_cast<FakeGraph*>(graph));
  return 0;
}
int cuGraphLaunch(Handle executable, Handle) {
  for (const auto& work : *static_cast<FakeGraph*>(executable))
    if (const int error = work(); error != 0) return error;
  return 0;
}
int cuGraphExecDestroy(Handle executable) {
  delete static_cast<FakeGraph*>(executable);
  return 0;
}
int cuGraphDestroy(Handle graph) {
  delete static_cast<FakeGraph*>(graph);
  return 0;
}
int cuEventCreate(Handle* event, unsigned) {
  *event = new double(0);
  return 0;
}
int cuEventDestroy_v2(Handle event) {
  delete static_cast<double*>(event);
  return 0;
}
int cuEventRecord(Handle event, Handle) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  *static_cast<double*>(event) = std::chrono::duration<double, std::milli>(now).count();
  return fake_cuda.error;
}
int cuEventQuery(Handle) {
  return fake_cuda.stuck ? recmill::cuda::kNotReady : fake_cuda.error;
}
int cuEventElapsedTime(float* milliseconds, Handle first, Handle last) {
  *milliseconds = static_cast<float>(*static_cast<double*>(last) - *static_cast<double*>(first));
  return 0;
}
int cuModuleLoadData(Handle* module, const void* image) {
  if (std::memcmp(image, FakeImage().magic, sizeof FakeImage::magic) != 0)
    return recmill::cuda::kNoImage;
  *module = const_cast<void*>(image);
  return 0;
}
int cuModuleGetFunction(Handle* function, Handle module, const char*) {
  *function = module;
  return 0;
}
int cuFuncSetAttribute(Handle, int, int) {
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, Handle function) {
  const auto* image = static_cast<const FakeImage*>(function);
  *value = attribute == recmill::cuda::kShared ? image->shared : image->most_threads;
  return 0;
}
int cuLaunchKernel(Handle function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,
                   Handle stream, void** arguments, void**) {
  if (fake_cuda.launches_fail) return fake_cuda.error;
  const recmill::Grid grid{
      {blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z}, shared};
  const auto* image = static_cast<const FakeImage*>(function);
  const auto run = [=](const void* of) {
    if (!fake_cuda.run("fake", grid, image->kernel, of, {}).ok())
      fake_cuda.error = 719;  // which a GPU says later, of the stream
    return 0;
  };
  if (!is_captured(stream)) return run(arguments[0]);
  const auto* const first = static_cast<const std::byte*>(arguments[0]);
  return enqueue(stream, [=, kept = std::vector<std::byte>(first, first + image->argument_bytes)] {
    return run(kept.data());
  });
}

}  // extern "C"
