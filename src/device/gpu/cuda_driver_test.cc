// SPDX-License-Identifier: Apache-2.0
// CUDA's driver as CudaDriver calls it, over a stand-in of the library.
#include "device/gpu/cuda_driver.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "device/gpu/gpu.h"
#include "device/gpu/testing/fake_cuda.h"
#include "device/kernel.cuh"

namespace recmill {
namespace {

using testing::FakeCuda;
using testing::FakeImage;
using ::testing::HasSubstr;

struct TwiceArguments {
  float* values;
  i64 count;
};
void twice(const void* of) {
  const auto& a = *static_cast<const TwiceArguments*>(of);
  if (threadIdx.x < a.count) a.values[threadIdx.x] *= 2;
}
void stop(const void*) {
  __trap();
}

class CudaDriverTest : public ::testing::Test {
 protected:
  CudaDriverTest() {
    library_ = dlopen(RECMILL_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    RECMILL_CHECK(library_ != nullptr, dlerror());
    fake_ = static_cast<FakeCuda*>(dlsym(library_, "fake_cuda"));
    *fake_ = {.run = &emulation::run_kernel};
  }
  ~CudaDriverTest() override { dlclose(library_); }

  static Result<std::unique_ptr<GpuDriver>> driver(int number = 0, double free_seconds = 0.01) {
    return make_cuda_driver(
        {.number = number, .library = RECMILL_FAKE_CUDA, .free_seconds = free_seconds});
  }
  static KernelCode code(const char* name, const FakeImage& image) {
    return {name, std::as_bytes(std::span(&image, 1))};
  }

  void* library_ = nullptr;
  FakeCuda* fake_ = nullptr;
};

TEST_F(CudaDriverTest, CopiesAndRunsKernels) {
  Gpu gpu(*driver(), {});
  EXPECT_EQ(gpu.properties().name, "fake GPU");
  EXPECT_EQ(gpu.properties().id[15], std::byte{'a'});
  EXPECT_EQ(gpu.properties().compute, 90);
  EXPECT_EQ(gpu.properties().sms, 4);
  EXPECT_EQ(gpu.properties().shared_of_block, 227 << 10);
  EXPECT_EQ(gpu.properties().memory_rate, 1024e9);
  const FakeImage image{.kernel = &twice};
  const auto kernel = *gpu.load(code("twice", image));
  auto stream = *gpu.open_stream(), other = *gpu.open_stream();
  auto host = *gpu.allocate_pinned(40, "host");
  auto memory = *gpu.allocate(40, "memory");
  for (float& value : host.as<float>()) value = 3;
  ASSERT_TRUE(stream.to_device(memory, host, 40).ok());
  ASSERT_TRUE(
      gpu.launch(kernel, {{1}, {32}}, TwiceArguments{memory.address<float>(), 10}, stream).ok());
  ASSERT_TRUE(other.wait_for(stream).ok());
  ASSERT_TRUE(other.to_host(host, memory, 40).ok());
  ASSERT_TRUE(other.synchronize().ok());
  EXPECT_EQ(host.as<float>()[9], 6);
  ASSERT_TRUE(other.zero(memory).ok());
  ASSERT_TRUE(other.to_host(host, memory, 40).ok());
  ASSERT_TRUE(other.synchronize().ok());
  EXPECT_EQ(host.as<float>()[0], 0);
}

TEST_F(CudaDriverTest, StreamsHavePriorities) {
  Gpu gpu(*driver(), {});
  ASSERT_TRUE(gpu.open_stream().ok());
  EXPECT_EQ(fake_->priority, 0);
  ASSERT_TRUE(gpu.open_stream(StreamPriority::high).ok());
  EXPECT_LT(fake_->priority, 0);
}

TEST_F(CudaDriverTest, KernelsReachMemoryOfTheHost) {
  Gpu gpu(*driver(), {});
  const FakeImage image{.kernel = &twice};
  const auto kernel = *gpu.load(code("twice", image));
  auto stream = *gpu.open_stream();
  const auto memory = *gpu.allocate(40, "rows", GpuMemory::host);
  float* const values = memory.address<float>();
  for (int i = 0; i < 10; ++i) values[i] = 3;
  ASSERT_TRUE(gpu.launch(kernel, {{1}, {32}}, TwiceArguments{values, 10}, stream).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(values[9], 6);
  fake_->unified = false;
  EXPECT_EQ(gpu.allocate(40, "table C3", GpuMemory::host).status().message(),
            "table C3: pinned memory of 40 bytes: the GPU has it at another address");
}

TEST_F(CudaDriverTest, NamesTheKernelThatFailed) {
  Gpu gpu(*driver(), {});
  const FakeImage image{.kernel = &stop}, other{.kernel = &twice};
  const auto stops = *gpu.load(code("stop", image)), fine = *gpu.load(code("twice", other));
  auto stream = *gpu.open_stream();
  ASSERT_TRUE(gpu.launch(stops, {{1}, {1}}, TwiceArguments{}, stream).ok());
  EXPECT_EQ(stream.synchronize().message(),
            "kernel stop: unspecified launch failure (CUDA error 719)");
  ASSERT_TRUE(gpu.launch(fine, {{1}, {1}}, TwiceArguments{}, stream).ok());
  EXPECT_EQ(stream.synchronize().message(),
            "one of the kernels stop, twice: unspecified launch failure (CUDA error 719)");
}

TEST_F(CudaDriverTest, RefusesBlocksThatTheKernelOrTheGpuDoesNotTake) {
  Gpu gpu(*driver(), {});
  const FakeImage image{.kernel = &twice, .most_threads = 64, .shared = 1000};
  KernelCode of = code("twice", image);
  of.most_dynamic_shared = (227 << 10) - 1000;
  const auto kernel = gpu.load(of);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  auto stream = *gpu.open_stream();
  const auto launched = [&](unsigned threads, unsigned long shared) {
    return gpu.launch(*kernel, {{1}, {threads}, shared}, TwiceArguments{}, stream).message();
  };
  EXPECT_EQ(launched(64, (227 << 10) - 1000), "");
  EXPECT_EQ(launched(65, 0), "kernel twice: a block of 65 threads, of which it takes 64");
  EXPECT_EQ(
      launched(64, (227 << 10) - 999),
      "kernel twice: 231449 bytes of shared memory for a block, beside its own; it was loaded "
      "for 231448");
  of.most_dynamic_shared += 1;
  EXPECT_EQ(gpu.load(of).status().message(),
            "kernel twice: 232449 bytes of shared memory for a block, of which fake GPU has "
            "232448");
}

TEST_F(CudaDriverTest, CapturesAndLaunchesGraphs) {
  Gpu gpu(*driver(), {});
  const FakeImage image{.kernel = &twice, .argument_bytes = sizeof(TwiceArguments)};
  const auto kernel = *gpu.load(code("twice", image));
  auto stream = *gpu.open_stream();
  auto host = *gpu.allocate_pinned(40, "host");
  auto memory = *gpu.allocate(40, "memory");
  for (float& value : host.as<float>()) value = 3;
  ASSERT_TRUE(stream.to_device(memory, host, 40).ok());
  const auto enqueue = [&] {
    return gpu.launch(kernel, {{1}, {32}}, TwiceArguments{memory.address<float>(), 10}, stream);
  };
  auto graph = stream.capture("layers, doubled", enqueue);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.launch(*graph).ok());
  ASSERT_TRUE(stream.to_host(host, memory, 40).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(host.as<float>()[9], 24);
  fake_->error = 719;
  ASSERT_TRUE(stream.launch(*graph).ok());
  EXPECT_EQ(stream.synchronize().message(),
            "kernel layers, doubled: unspecified launch failure (CUDA error 719)");
  fake_->no_graphs = true;
  EXPECT_EQ(stream.capture("layers, doubled", enqueue).status().message(),
            "layers, doubled: its graph: some error (CUDA error 801)");
}

// An error of kernels is said by whoever asks next: by another stream, and by a launch.
TEST_F(CudaDriverTest, NamesTheKernelThatFailedOnAnotherStream) {
  Gpu gpu(*driver(), {});
  const FakeImage image{.kernel = &stop}, other{.kernel = &twice};
  const auto stops = *gpu.load(code("stop", image)), fine = *gpu.load(code("twice", other));
  auto stream = *gpu.open_stream(), asked = *gpu.open_stream();
  ASSERT_TRUE(gpu.launch(stops, {{1}, {1}}, TwiceArguments{}, stream).ok());
  const std::string failed = "kernel stop: unspecified launch failure (CUDA error 719)";
  EXPECT_EQ(asked.synchronize().message(), failed);
  fake_->launches_fail = true;
  EXPECT_EQ(gpu.launch(fine, {{1}, {1}}, TwiceArguments{}, asked).message(), failed);
  fake_->error = 1;
  EXPECT_EQ(gpu.launch(fine, {{1}, {1}}, TwiceArguments{}, asked).message(),
            "kernel twice: some error (CUDA error 1)");
}

// A wait for all that is enqueued, which comes before memory is freed, breaks captures: those of
// other ranks' drivers too.
TEST_F(CudaDriverTest, FreesNothingWhileAStreamIsCaptured) {
  Gpu gpu(*driver(), {}), rank(*driver(), {});
  auto stream = *gpu.open_stream(), other = *gpu.open_stream();
  auto of_rank = *rank.allocate(40, "memory");
  auto memory = *gpu.allocate(40, "memory"), longer = *gpu.allocate(40, "longer");
  auto pinned = *gpu.allocate_pinned(40, "pinned");
  auto first = *stream.capture("first", [&] { return stream.zero(memory); });
  const auto graph = stream.capture("zeros", [&] {
    longer = {};
    of_rank = {};
    pinned = {};
    first = {};
    EXPECT_TRUE(other.capture("within", [&] { return other.zero(memory); }).ok());
    EXPECT_EQ(fake_->freed, 0);
    return stream.zero(memory);
  });
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(fake_->freed, 2);
  memory = {};
  EXPECT_EQ(fake_->freed, 3);
}

// Whatever would wait for it is left: the program is to end, and say why.
TEST_F(CudaDriverTest, NamesTheKernelThatDoesNotEndAndWaitsForItNoMore) {
  std::array<void*, 2> left = {};
  {
    Gpu gpu(*driver(), {.kernel_seconds = 0.01});
    const FakeImage image{.kernel = &twice};
    const auto kernel = *gpu.load(code("twice", image));
    auto stream = *gpu.open_stream(), asked = *gpu.open_stream();
    auto event = *gpu.open_event();
    const auto memory = *gpu.allocate(40, "memory");
    auto pinned = *gpu.allocate_pinned(40, "pinned");
    left = {memory.address<void>(), pinned.as<std::byte>().data()};
    ASSERT_TRUE(gpu.launch(kernel, {{1}, {1}}, TwiceArguments{}, stream).ok());
    ASSERT_TRUE(event.record(stream).ok());
    fake_->stuck = true;
    EXPECT_EQ(asked.synchronize().message(), "kernel twice is not done after 0.01 s");
    EXPECT_EQ(stream.synchronize().message(), "kernel twice has been given up");
    EXPECT_EQ(event.synchronize().message(), "kernel twice has been given up");
  }
  EXPECT_TRUE(cuda_kernel_was_given_up());
  EXPECT_EQ(fake_->hung, 0);
  for (void* const memory : left) std::free(memory);
}

// CUDA waits for what runs when it frees memory: for ever where a kernel does not end.
TEST_F(CudaDriverTest, FreesNothingWhileAKernelRuns) {
  Gpu gpu(*driver(), {});
  auto stream = *gpu.open_stream(), other = *gpu.open_stream();
  auto memory = *gpu.allocate(40, "memory"), longer = *gpu.allocate(80, "longer");
  auto pinned = *gpu.allocate_pinned(40, "pinned");
  fake_->stuck = true;
  memory = {};
  pinned = {};
  EXPECT_EQ(fake_->freed, 0);
  fake_->stuck = false;
  EXPECT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(fake_->freed, 1);

  fake_->stuck = true;
  longer = {};
  fake_->stuck = false;
  fake_->most_bytes = 100;
  const auto again = gpu.allocate(90, "the longest");
  EXPECT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(fake_->hung, 0);
}

// Some of what is on one GPU may wait for another's: a thread that frees would keep it from coming.
TEST_F(CudaDriverTest, FreesNothingWhileAKernelRunsOnAnotherGpu) {
  fake_->gpus = 2;
  Gpu gpu(*driver(0), {}), other(*driver(1), {});
  auto stream = *gpu.open_stream();
  auto memory = *other.allocate(40, "memory");
  fake_->stuck = true;
  memory = {};
  EXPECT_EQ(fake_->freed, 0);
  fake_->stuck = false;
  EXPECT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(fake_->freed, 1);
  EXPECT_EQ(fake_->hung, 0);
}

TEST_F(CudaDriverTest, FreesNothingWhileAStreamRunsThatIsClosed) {
  Gpu gpu(*driver(), {});
  auto memory = *gpu.allocate(40, "memory"), longer = *gpu.allocate(80, "longer");
  fake_->stuck = true;
  gpu.driver().close_stream(*gpu.driver().open_stream(StreamPriority::normal));
  memory = {};
  EXPECT_EQ(fake_->freed, 0);
  EXPECT_EQ(fake_->hung, 0);
  fake_->stuck = false;
  longer = {};
  EXPECT_EQ(fake_->freed, 2);
}

TEST_F(CudaDriverTest, WaitsOnceForWhatRunsHoweverMuchIsFreed) {
  Gpu gpu(*driver(), {});
  const auto stream = *gpu.open_stream();
  auto memory = *gpu.allocate(40, "memory"), longer = *gpu.allocate(80, "longer");
  fake_->stuck = true;
  memory = {};
  const int queries = fake_->queries;
  longer = {};
  EXPECT_EQ(fake_->queries, queries + 1);
  fake_->stuck = false;
}

// What a capture put off is not what somebody waited for in vain.
TEST_F(CudaDriverTest, WaitsForWhatRunsWhereACapturePutSomethingOff) {
  Gpu gpu(*driver(), {});
  auto stream = *gpu.open_stream();
  auto memory = *gpu.allocate(40, "memory"), longer = *gpu.allocate(80, "longer");
  const auto graph = stream.capture("nothing", [&] {
    memory = {};
    fake_->stuck = true;
    return Status();
  });
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const int queries = fake_->queries;
  longer = {};
  EXPECT_GT(fake_->queries, queries + 1);
  EXPECT_EQ(fake_->freed, 0);
  fake_->stuck = false;
  EXPECT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(fake_->freed, 2);
}

// Else who takes memory would look for it too early.
TEST_F(CudaDriverTest, WaitsForWhatOtherThreadsFree) {
  static std::atomic<bool> frees, is_freed;
  frees = is_freed = false;
  Gpu gpu(*driver(0, 60), {});
  auto memory = *gpu.allocate(40, "memory"), longer = *gpu.allocate(80, "longer");
  fake_->before_free = [] {
    if (frees.exchange(true)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    is_freed = true;
  };
  std::thread other([&] { memory = {}; });
  while (!frees) std::this_thread::yield();
  longer = {};
  EXPECT_TRUE(is_freed);
  other.join();
}

TEST_F(CudaDriverTest, GivesUpWithoutBreakingAnotherRanksCapture) {
  Gpu gpu(*driver(), {}), rank(*driver(), {});
  auto stream = *gpu.open_stream();
  const auto graph = stream.capture("nothing", [&] {
    rank.driver().give_up();
    return Status();
  });
  EXPECT_TRUE(graph.ok()) << graph.status().message();
}

TEST_F(CudaDriverTest, NamesTheGraphThatIsNotLaunched) {
  Gpu gpu(*driver(), {});
  auto stream = *gpu.open_stream();
  auto memory = *gpu.allocate(40, "memory");
  const auto graph = stream.capture("zeros", [&] { return stream.zero(memory); });
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  fake_->error = 1;
  EXPECT_EQ(stream.launch(*graph).message(), "zeros: some error (CUDA error 1)");
}

TEST_F(CudaDriverTest, SaysWhatPinnedMemoryItHasNot) {
  fake_->most_pinned = 100;
  Gpu gpu(*driver(), {});
  auto stream = *gpu.open_stream();
  auto batch = *gpu.allocate_pinned(60, "a batch");
  EXPECT_EQ(gpu.allocate_pinned(50, "a batch").status().message(),
            "a batch: pinned memory of 50 bytes: some error (CUDA error 2)");
  fake_->stuck = true;
  batch = {};
  fake_->stuck = false;
  EXPECT_TRUE(gpu.allocate_pinned(50, "a batch").ok());  // once what was put off is free
  EXPECT_EQ(fake_->hung, 0);
}

// A thread that frees holds nobody up, and is let go.
TEST_F(CudaDriverTest, GivesUpWhileAnotherThreadFrees) {
  void* left = nullptr;
  {
    Gpu gpu(*driver(0, /*free_seconds=*/60), {.kernel_seconds = 0.05});
    const FakeImage image{.kernel = &twice};
    const auto kernel = *gpu.load(code("twice", image));
    auto stream = *gpu.open_stream(), other = *gpu.open_stream();
    auto memory = *gpu.allocate(40, "memory");
    left = memory.address<void>();
    ASSERT_TRUE(gpu.launch(kernel, {{1}, {1}}, TwiceArguments{}, stream).ok());
    fake_->stuck = true;
    std::thread frees([&] { memory = {}; });
    EXPECT_EQ(other.synchronize().message(), "kernel twice is not done after 0.05 s");
    frees.join();
  }
  EXPECT_EQ(fake_->hung, 0);
  std::free(left);
}

TEST_F(CudaDriverTest, OpensMemoryOfOtherProcessesButNotItsOwn) {
  const auto owner = *driver(), other = *driver();
  void* const memory = *owner->allocate(8);
  GpuMemoryHandle handle = *owner->share(memory);
  void* const own = *other->open_shared(handle);
  EXPECT_EQ(own, memory);
  EXPECT_EQ(fake_->opened, 0);
  other->close_shared(own);
  ++handle.process;
  handle.address = nullptr;
  void* const opened = *other->open_shared(handle);
  EXPECT_EQ(opened, memory);
  EXPECT_EQ(fake_->opened, 1);
  EXPECT_EQ(*other->open_shared(handle), memory);  // as the driver has it: counted
  EXPECT_EQ(fake_->opened, 2);
  for (int i = 0; i < 2; ++i) other->close_shared(opened);
  EXPECT_EQ(fake_->opened, 0);
  owner->free(memory);
}

TEST_F(CudaDriverTest, SaysWhyThereIsNone) {
  EXPECT_THAT(make_cuda_driver({0, "libno_cuda.so.1"}).status().message(),
              HasSubstr("no CUDA driver: libno_cuda.so.1"));
  EXPECT_EQ(make_cuda_driver({0, "libm.so.6"}).status().message(),
            "the driver libm.so.6 has no cuInit");
  EXPECT_EQ(driver(1).status().message(), "GPU 1: the machine has 1");
  EXPECT_TRUE(make_cuda_driver({1, RECMILL_FAKE_CUDA, /*wraps=*/true}).ok());
  EXPECT_EQ(*count_cuda_gpus(RECMILL_FAKE_CUDA), 1);
  EXPECT_THAT(count_cuda_gpus("libno_cuda.so.1").status().message(),
              HasSubstr("no CUDA driver: libno_cuda.so.1"));
  fake_->version = 12040;
  EXPECT_EQ(driver().status().message(), "the driver is for CUDA 12.4: 13.0 is the least");
}

TEST_F(CudaDriverTest, SaysWhatItHasNoMemoryOrCodeFor) {
  fake_->most_bytes = 1 << 20;
  Gpu gpu(*driver(), {});
  EXPECT_EQ(gpu.allocate(2 << 20, "table C3").status().message(),
            "table C3: 2.0 MiB of device memory, of which 1.0 MiB of 1024.0 MiB are free");
  const std::byte nothing[16] = {};
  EXPECT_EQ(gpu.load({"add", nothing}).status().message(),
            "kernel add was compiled for another architecture than sm_90");
  EXPECT_EQ(gpu.load({"add"}).status().message(), "kernel add was not compiled for sm_90");
}

}  // namespace
}  // namespace recmill
