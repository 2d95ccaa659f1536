// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device/gpu/emulated_driver.h"
#include "device/kernel.cuh"

namespace recmill {
namespace {

using testing::HasSubstr;

struct AddArguments {
  const float* from;
  float* to;
  i64 count;
  float value;
};

void add(const AddArguments& a) {
  const i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < a.count) a.to[i] = a.from[i] + a.value;
}

struct NoArguments {
  u8 none;
};
void stop(const NoArguments&) {
  if (threadIdx.x == 3) __trap();
}
void spin(const NoArguments&) {
  while (true) __syncthreads();
}

template <auto kKernel, class Arguments>
KernelCode code(const char* name) {
  return {name, {}, [](const void* of) { kKernel(*static_cast<const Arguments*>(of)); }};
}

class GpuTest : public testing::Test {
 protected:
  explicit GpuTest(EmulatedGpu of = {}, GpuOptions options = {})
      : gpu_(*make_emulated_driver(of), options),
        add_(*gpu_.load(code<&add, AddArguments>("add"))),
        stream_(*gpu_.open_stream()) {}

  Status add_to(GpuBuffer& from, GpuBuffer& to, float value, GpuStream& stream) {
    const auto count = static_cast<i64>(from.size() / sizeof(float));
    return gpu_.launch(add_, {{static_cast<unsigned>(count + 63) / 64}, {64}},
                       AddArguments{from.address<float>(), to.address<float>(), count, value},
                       stream);
  }

  Gpu gpu_;
  GpuKernel add_;
  GpuStream stream_;
};

TEST_F(GpuTest, DoesWhatIsEnqueuedInOrderOnceItIsWaitedFor) {
  auto host = *gpu_.allocate_pinned(100 * sizeof(float), "host");
  auto a = *gpu_.allocate(100 * sizeof(float), "a"), b = *gpu_.allocate(100 * sizeof(float), "b");
  for (float& value : host.as<float>()) value = 1;
  ASSERT_TRUE(stream_.to_device(a, host, a.size()).ok());
  ASSERT_TRUE(add_to(a, b, 2, stream_).ok());
  ASSERT_TRUE(add_to(b, a, 3, stream_).ok());
  ASSERT_TRUE(stream_.to_host(host, a, a.size()).ok());
  EXPECT_EQ(host.as<float>()[7], 1);  // nothing has happened yet
  ASSERT_TRUE(stream_.synchronize().ok());
  for (const float value : host.as<float>()) EXPECT_EQ(value, 6);
}

TEST_F(GpuTest, StreamsWaitForEachOther) {
  auto host = *gpu_.allocate_pinned(4, "host");
  auto memory = *gpu_.allocate(4, "memory");
  GpuStream other = *gpu_.open_stream();
  ASSERT_TRUE(other.zero(memory).ok());
  ASSERT_TRUE(add_to(memory, memory, 5, other).ok());
  ASSERT_TRUE(stream_.wait_for(other).ok());
  ASSERT_TRUE(add_to(memory, memory, 0, other).ok());  // behind the event
  ASSERT_TRUE(stream_.to_host(host, memory, 4).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_EQ(host.as<float>()[0], 5);
}

TEST_F(GpuTest, StreamsMoveWithWhatTheyHave) {
  auto memory = *gpu_.allocate(4, "memory");
  GpuStream other = *gpu_.open_stream();
  ASSERT_TRUE(other.zero(memory).ok());
  ASSERT_TRUE(add_to(memory, memory, 5, other).ok());
  ASSERT_TRUE(add_to(memory, memory, 7, stream_).ok());
  stream_ = std::move(other);  // what was enqueued before happens when its stream is closed
  auto host = *gpu_.allocate_pinned(4, "host");
  ASSERT_TRUE(stream_.to_host(host, memory, 4).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_EQ(host.as<float>()[0], 5);
}

TEST_F(GpuTest, MemoryBeginsWithNaN) {
  auto host = *gpu_.allocate_pinned(8, "host");
  auto memory = *gpu_.allocate(8, "memory");
  ASSERT_TRUE(stream_.to_host(host, memory, 8).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_TRUE(std::isnan(host.as<float>()[1]));
}

TEST_F(GpuTest, NamesTheKernelThatFails) {
  const auto stops = *gpu_.load(code<&stop, NoArguments>("stop"));
  ASSERT_TRUE(gpu_.launch(stops, {{2}, {32}}, NoArguments{}, stream_).ok());
  const std::string said = stream_.synchronize().message();
  EXPECT_THAT(said, HasSubstr("kernel stop, block (0, 0, 0), thread (3, 0, 0): trapped"));
  // As on a GPU: nothing works any more.
  EXPECT_EQ(gpu_.launch(stops, {{1}, {32}}, NoArguments{}, stream_).message(), said);
}

TEST_F(GpuTest, RefusesWhatTheGpuDoesNotHave) {
  const auto refused = [&](const Grid& grid) {
    return gpu_.launch(add_, grid, AddArguments{}, stream_).message();
  };
  EXPECT_EQ(refused({{1}, {2000}}), "kernel add: a block of 2000 threads, not 1 to 1024");
  EXPECT_EQ(refused({{1, 70000}, {1}}), "kernel add: a grid of 1 x 70000 x 1 blocks");
  EXPECT_EQ(refused({{1}, {1}, 300000}),
            "kernel add: 300000 bytes of shared memory for a block, of which emulated has 232448");
  EXPECT_EQ(gpu_.load({"missing", {}, nullptr}).status().message(),
            "kernel missing was not compiled for the emulator");
}

class SmallGpu : public GpuTest {
 protected:
  SmallGpu() : GpuTest({.memory = 3 << 20}, {.synchronous = true}) {}
};

TEST_F(SmallGpu, SaysWhatItHasNoMemoryFor) {
  auto first = *gpu_.allocate(2 << 20, "first");
  EXPECT_EQ(gpu_.allocate(5 << 19, "table C3").status().message(),
            "table C3: 2.5 MiB of device memory, of which 1.0 MiB of 3.0 MiB are free");
  first = {};
  EXPECT_TRUE(gpu_.allocate(5 << 19, "table C3").ok());
}

TEST_F(SmallGpu, RunsAKernelAtATimeWhenAskedTo) {
  const auto stops = *gpu_.load(code<&stop, NoArguments>("stop"));
  EXPECT_THAT(gpu_.launch(stops, {{1}, {32}}, NoArguments{}, stream_).message(),
              HasSubstr("kernel stop"));
}

class ImpatientGpu : public GpuTest {
 protected:
  ImpatientGpu() : GpuTest({.turns = {.most = 1000}}) {}
};

TEST_F(ImpatientGpu, EndsAKernelThatDoesNot) {
  const auto spins = *gpu_.load(code<&spin, NoArguments>("spin"));
  ASSERT_TRUE(gpu_.launch(spins, {{1}, {32}}, NoArguments{}, stream_).ok());
  EXPECT_THAT(stream_.synchronize().message(), HasSubstr("kernel spin"));
}

}  // namespace
}  // namespace recmill
