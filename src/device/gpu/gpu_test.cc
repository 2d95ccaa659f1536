// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "device/gpu/testing/test_gpu.h"
#include "device/gpu/testing/test_kernels.cuh"
#include "kernels/codegen/embedded_texts.h"
#include "kernels/codegen/gpu/device_text.h"
#include "kernels/codegen/testing/test_code.h"

namespace recmill {
namespace {

using testing::AddArguments;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::on_cuda;
using testing::SpinArguments;
using ::testing::StartsWith;
using testing::StopArguments;

KernelCode code(const char* name, void (*emulated)(const void*)) {
  using namespace kernels::codegen;
  const std::string text = *read_text(posix_files(), RECMILL_TEST_KERNELS);
  return test_code({device_text({kernel_types_text(), kernel_text(), text}), name}, emulated);
}

class GpuTest : public ::testing::Test {
 protected:
  explicit GpuTest(EmulatedGpu of = {}, GpuOptions options = {})
      : gpu_(testing::test_driver(of), options),
        add_(*gpu_.load(code("test_add", &test_add_emulated))),
        stream_(*gpu_.open_stream()) {}

  Status add_to(GpuBuffer& from, GpuBuffer& to, float value, GpuStream& stream) {
    const auto count = static_cast<i64>(from.size() / sizeof(float));
    return gpu_.launch(add_, {{static_cast<unsigned>(count + 63) / 64}, {64}},
                       AddArguments{from.address<float>(), to.address<float>(), count, value},
                       stream);
  }

  /// Of a kernel that asks for so many bytes: when it is loaded, or by the emulator when it runs.
  std::string said_of_shared(int bytes) {
    KernelCode asks = code("test_add", &test_add_emulated);
    asks.most_dynamic_shared = bytes;
    const auto kernel = gpu_.load(asks);
    if (!kernel.ok()) return kernel.status().message();
    const Status launched = gpu_.launch(*kernel, {{1}, {1}, static_cast<unsigned long>(bytes)},
                                        AddArguments{}, stream_);
    return launched.ok() ? stream_.synchronize().message() : launched.message();
  }

  Gpu gpu_;
  GpuKernel add_;
  GpuStream stream_;
};

TEST_F(GpuTest, DoesWhatIsEnqueuedInOrderOnceItIsWaitedFor) {
  auto host = *gpu_.allocate_pinned(100 * sizeof(float), "host");
  auto a = *gpu_.allocate(100 * sizeof(float), "a"), b = *gpu_.allocate(100 * sizeof(float), "b");
  auto c = *gpu_.allocate(100 * sizeof(float), "c");
  for (float& value : host.as<float>()) value = 1;
  ASSERT_TRUE(stream_.to_device(a, host, a.size()).ok());
  ASSERT_TRUE(add_to(a, b, 2, stream_).ok());
  ASSERT_TRUE(add_to(b, a, 3, stream_).ok());
  ASSERT_TRUE(stream_.copy(c, a, a.size()).ok());
  ASSERT_TRUE(stream_.to_host(host, c, c.size()).ok());
  if (!on_cuda()) {
    EXPECT_EQ(host.as<float>()[7], 1);  // nothing has happened yet
  }
  ASSERT_TRUE(stream_.synchronize().ok());
  for (const float value : host.as<float>()) EXPECT_EQ(value, 6);
}

TEST_F(GpuTest, StreamsWaitForEachOther) {
  auto host = *gpu_.allocate_pinned(4, "host");
  auto memory = *gpu_.allocate(4, "memory"), copy = *gpu_.allocate(4, "copy");
  GpuStream other = *gpu_.open_stream();
  ASSERT_TRUE(other.zero(memory).ok());
  ASSERT_TRUE(add_to(memory, memory, 5, other).ok());
  ASSERT_TRUE(stream_.wait_for(other).ok());
  ASSERT_TRUE(add_to(memory, copy, 0, other).ok());  // behind the event
  ASSERT_TRUE(stream_.to_host(host, memory, 4).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_EQ(host.as<float>()[0], 5);
}

TEST_F(GpuTest, AGraphDoesAgainWhatWasCaptured) {
  auto host = *gpu_.allocate_pinned(4, "host");
  auto memory = *gpu_.allocate(4, "memory"), sum = *gpu_.allocate(4, "sum");
  host.as<float>()[0] = 1;
  ASSERT_TRUE(stream_.to_device(memory, host, 4).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  auto graph = stream_.capture("sums", [&] {
    for (const float value : {2.0f, 3.0f})
      RECMILL_RETURN_IF_ERROR(add_to(memory, memory, value, stream_));
    return stream_.copy(sum, memory, 4);
  });
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto sum_now = [&] {
    EXPECT_TRUE(stream_.to_host(host, sum, 4).ok());
    const Status status = stream_.synchronize();
    EXPECT_TRUE(status.ok()) << status.message();
    return host.as<float>()[0];
  };
  ASSERT_TRUE(stream_.zero(sum).ok());
  EXPECT_EQ(sum_now(), 0) << "nothing has happened";
  ASSERT_TRUE(stream_.launch(*graph).ok());
  ASSERT_TRUE(stream_.launch(*graph).ok());
  EXPECT_EQ(sum_now(), 11);
  ASSERT_TRUE(stream_.zero(memory).ok());  // reads what is there
  GpuGraph moved = *std::move(graph);
  ASSERT_TRUE(stream_.launch(moved).ok());
  EXPECT_EQ(sum_now(), 5);
}

TEST_F(GpuTest, ACaptureThatFailsLeavesTheStream) {
  auto memory = *gpu_.allocate(4, "memory");
  const auto graph = stream_.capture("sums", [&] {
    RECMILL_RETURN_IF_ERROR(stream_.zero(memory));
    return Status::Failed("why");
  });
  EXPECT_EQ(graph.status().message(), "why");
  auto host = *gpu_.allocate_pinned(4, "host");
  host.as<float>()[0] = 1;
  ASSERT_TRUE(stream_.to_device(memory, host, 4).ok());
  ASSERT_TRUE(add_to(memory, memory, 2, stream_).ok());
  ASSERT_TRUE(stream_.to_host(host, memory, 4).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_EQ(host.as<float>()[0], 3);
}

TEST_F(GpuTest, ACaptureWaitsForNothing) {
  if (on_cuda()) GTEST_SKIP() << "says it in other words";
  GpuStream other = *gpu_.open_stream();
  EXPECT_EQ(stream_.capture("sums", [&] { return stream_.synchronize(); }).status().message(),
            "a graph is waited for");
  EXPECT_EQ(stream_.capture("sums", [&] { return stream_.wait_for(other); }).status().message(),
            "an event within a graph");
}

TEST_F(GpuTest, EventsAreWaitedForWithoutWhatComesBehind) {
  auto host = *gpu_.allocate_pinned(8, "host");
  auto memory = *gpu_.allocate(8, "memory");
  auto event = *gpu_.open_event();
  GpuStream other = *gpu_.open_stream();
  ASSERT_TRUE(event.synchronize().ok()) << "was never recorded";
  ASSERT_TRUE(other.wait_for(event).ok());
  host.as<float>()[0] = host.as<float>()[1] = 1;
  ASSERT_TRUE(stream_.to_device(memory, host, 8).ok());
  ASSERT_TRUE(event.record(stream_).ok());
  ASSERT_TRUE(add_to(memory, memory, 5, stream_).ok());
  ASSERT_TRUE(event.synchronize().ok());
  host.as<float>()[0] = 7;  // has been copied
  ASSERT_TRUE(event.record(stream_).ok());
  ASSERT_TRUE(other.wait_for(event).ok());
  event = {};  // closed before it happens
  ASSERT_TRUE(other.to_host(host, memory, 8).ok());
  ASSERT_TRUE(other.synchronize().ok());
  EXPECT_EQ(host.as<float>()[0], 6);
}

TEST_F(GpuTest, StreamsWaitForWhatTakesItsTime) {
  if (on_cuda()) GTEST_SKIP() << "is the emulator's own";
  auto first = *gpu_.open_stream();
  auto host = *gpu_.allocate_pinned(4, "host");
  auto memory = *gpu_.allocate(4, "memory");
  host.as<float>()[0] = 3;
  bool has_happened = false;
  int asked = 0;
  ASSERT_TRUE(enqueue_on_emulated(first.handle(), [&]() -> Result<bool> {
                ++asked;
                return has_happened;
              }).ok());
  ASSERT_TRUE(first.to_device(memory, host, 4).ok());
  ASSERT_TRUE(stream_.wait_for(first).ok());
  ASSERT_TRUE(add_to(memory, memory, 2, stream_).ok());
  ASSERT_TRUE(stream_.to_host(host, memory, 4).ok());
  EXPECT_EQ(asked, 0);
  EXPECT_FALSE(*stream_.is_done());
  EXPECT_FALSE(*first.is_done());
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(host.as<float>()[0], 3);
  has_happened = true;
  EXPECT_TRUE(*stream_.is_done());
  EXPECT_EQ(host.as<float>()[0], 5);
  EXPECT_EQ(asked, 3);
}

TEST_F(GpuTest, KeepsMemoryThatWhatWaitsIsFor) {
  if (on_cuda()) GTEST_SKIP() << "is the emulator's own";
  auto host = *gpu_.allocate_pinned(4, "host");
  bool has_happened = false;
  const int64_t free_bytes = gpu_.driver().free_bytes();
  {
    auto memory = *gpu_.allocate(4, "memory");
    ASSERT_TRUE(stream_.zero(memory).ok());
    ASSERT_TRUE(
        enqueue_on_emulated(stream_.handle(), [&]() -> Result<bool> { return has_happened; }).ok());
    ASSERT_TRUE(stream_.to_host(host, memory, 4).ok());
  }
  EXPECT_EQ(gpu_.driver().free_bytes(), free_bytes);
  auto other = *gpu_.allocate(4, "what may be where that was");
  host.as<float>()[0] = 3;
  has_happened = true;
  EXPECT_TRUE(*stream_.is_done());
  EXPECT_EQ(host.as<float>()[0], 0);
}

class GpuWithoutPatience : public GpuTest {
 protected:
  GpuWithoutPatience() : GpuTest({}, {.kernel_seconds = 0.01}) {}
};

TEST_F(GpuWithoutPatience, GivesUpWhatStreamsWaitForOfEachOther) {
  if (on_cuda()) GTEST_SKIP() << "is the emulator's own";
  GpuStream other = *gpu_.open_stream();
  ASSERT_TRUE(enqueue_on_emulated(other.handle(), [] { return false; }).ok());
  ASSERT_TRUE(stream_.wait_for(other).ok());
  ASSERT_TRUE(other.wait_for(stream_).ok());
  EXPECT_EQ(stream_.synchronize().message(),
            "a stream whose last kernel is none is not done after 0.01 s");
  EXPECT_EQ(other.synchronize().message(), "what was enqueued has been given up");
}  // of which nothing is left: a leak would be seen

TEST_F(GpuTest, StreamsMoveWithWhatTheyHave) {
  auto memory = *gpu_.allocate(4, "memory"), copy = *gpu_.allocate(4, "copy");
  GpuStream other = *gpu_.open_stream();
  ASSERT_TRUE(other.zero(memory).ok());
  ASSERT_TRUE(add_to(memory, memory, 5, other).ok());
  ASSERT_TRUE(add_to(memory, copy, 7, stream_).ok());
  stream_ = std::move(other);  // what was enqueued before happens when its stream is closed
  auto host = *gpu_.allocate_pinned(4, "host");
  ASSERT_TRUE(stream_.to_host(host, memory, 4).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_EQ(host.as<float>()[0], 5);
}

TEST_F(GpuTest, TimesWhatIsBetween) {
  auto memory = *gpu_.allocate(1 << 20, "memory");
  auto inner = *gpu_.open_timer(), outer = *gpu_.open_timer();
  ASSERT_TRUE(outer.start(stream_).ok());
  ASSERT_TRUE(inner.start(stream_).ok());
  ASSERT_TRUE(stream_.zero(memory).ok());
  ASSERT_TRUE(inner.stop(stream_).ok());
  ASSERT_TRUE(add_to(memory, memory, 1, stream_).ok());
  ASSERT_TRUE(outer.stop(stream_).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_GT(*inner.seconds(), 0);
  EXPECT_GT(*outer.seconds(), *inner.seconds());
}

TEST_F(GpuTest, MemoryOfTheEmulatorBeginsWithNaN) {
  if (on_cuda()) GTEST_SKIP() << "that of a GPU begins with anything";
  auto host = *gpu_.allocate_pinned(8, "host");
  auto memory = *gpu_.allocate(8, "memory");
  ASSERT_TRUE(stream_.to_host(host, memory, 8).ok());
  ASSERT_TRUE(stream_.synchronize().ok());
  EXPECT_TRUE(std::isnan(host.as<float>()[1]));
}

TEST_F(GpuTest, RefusesWhatTheGpuDoesNotHave) {
  const auto refused = [&](const Grid& grid) {
    return gpu_.launch(add_, grid, AddArguments{}, stream_).message();
  };
  EXPECT_EQ(refused({{1}, {2000}}), "kernel test_add: a block of 2000 threads, not 1 to 1024");
  EXPECT_EQ(refused({{1, 70000}, {1}}), "kernel test_add: a grid of 1 x 70000 x 1 blocks");
  EXPECT_EQ(refused({{1}, {1}, 16}),
            "kernel test_add: 16 bytes of shared memory for a block, beside its own; it was loaded "
            "for 0");
  if (on_cuda()) {
    EXPECT_EQ(refused({{1}, {65}}), "kernel test_add: a block of 65 threads, of which it takes 64");
  }
  EXPECT_EQ(said_of_shared(300000),
            "kernel test_add: 300000 bytes of shared memory for a block, of which " +
                gpu_.properties().name + " has " +
                std::to_string(gpu_.properties().shared_of_block));
  EXPECT_THAT(gpu_.load({"missing", {}, nullptr}).status().message(),
              StartsWith("kernel missing was not compiled for "));
}

class CheckedGpu : public GpuTest {
 protected:
  CheckedGpu() : GpuTest({}, {.check_nan = true}) {}
};

TEST_F(CheckedGpu, NamesTheKernelThatWroteANaN) {
  auto host = *gpu_.allocate_pinned(64 * sizeof(float), "host");
  auto a = *gpu_.allocate(64 * sizeof(float), "a"), b = *gpu_.allocate(64 * sizeof(float), "b");
  const auto check = [&] {
    return gpu_.check_nan(add_, b.address<float>(), 4, 13, 16, "rows", stream_);
  };
  for (float& value : host.as<float>()) value = 1;
  host.as<float>()[2 * 16 + 13] = std::nanf("");  // between two rows
  ASSERT_TRUE(stream_.to_device(a, host, a.size()).ok());
  ASSERT_TRUE(add_to(a, b, 2, stream_).ok());
  EXPECT_TRUE(check().ok()) << check().message();
  host.as<float>()[2 * 16 + 12] = std::nanf("");
  ASSERT_TRUE(stream_.to_device(a, host, a.size()).ok());
  ASSERT_TRUE(add_to(a, b, 2, stream_).ok());
  EXPECT_EQ(check().message(), "kernel test_add: wrote a NaN as element 12 of row 2 of rows");
}

TEST_F(GpuTest, SaysWhatItHasNoMemoryFor) {
  const auto all = static_cast<size_t>(gpu_.properties().memory);
  EXPECT_THAT(gpu_.allocate(all + 1, "table C3").status().message(),
              AllOf(StartsWith("table C3: "), HasSubstr(" of device memory, of which "),
                    EndsWith(" are free")));
  EXPECT_TRUE(gpu_.allocate(5 << 19, "table C3").ok());
}

class SmallGpu : public GpuTest {
 protected:
  SmallGpu() : GpuTest({.memory = 3 << 20}) {}
};

TEST_F(SmallGpu, SaysHowMuchOfItsMemoryIsFree) {
  if (on_cuda()) GTEST_SKIP() << "a GPU has more";
  auto first = *gpu_.allocate(2 << 20, "first");
  EXPECT_EQ(gpu_.allocate(5 << 19, "table C3").status().message(),
            "table C3: 2.5 MiB of device memory, of which 1.0 MiB of 3.0 MiB are free");
  first = {};
  EXPECT_TRUE(gpu_.allocate(5 << 19, "table C3").ok());
}

class FailingKernel : public GpuTest {
 protected:
  explicit FailingKernel(GpuOptions options = {}) : GpuTest({}, options) {}
  GpuKernel stops_ = *gpu_.load(code("test_stop", &test_stop_emulated));
};

class GpuBesideASmallHost : public GpuTest {
 protected:
  GpuBesideASmallHost() : GpuTest({.pinned_memory = 1000}) {}
};
TEST_F(GpuBesideASmallHost, SaysWhatThereIsNoPinnedMemoryFor) {
  if (on_cuda()) GTEST_SKIP() << "that of a machine may have more";
  EXPECT_TRUE(gpu_.allocate_pinned(1000, "a batch's ids").ok());
  EXPECT_EQ(gpu_.allocate_pinned(1001, "a batch's ids").status().message(),
            "a batch's ids: pinned memory of 1001 bytes: the host has no more");
}

TEST_F(FailingKernel, IsNamed) {
  ASSERT_TRUE(gpu_.launch(stops_, {{2}, {32}}, StopArguments{3}, stream_).ok());
  const std::string said = stream_.synchronize().message();
  EXPECT_THAT(said, HasSubstr("kernel test_stop"));
  if (!on_cuda()) {
    EXPECT_THAT(said, HasSubstr(", block (0, 0, 0), thread (3, 0, 0): trapped"));
  }
  // Nothing works any more.
  const Status after = gpu_.launch(stops_, {{1}, {32}}, StopArguments{3}, stream_);
  EXPECT_THAT(after.message(), HasSubstr("kernel test_stop"));
}

class SynchronousFailingKernel : public FailingKernel {
 protected:
  SynchronousFailingKernel() : FailingKernel({.synchronous = true}) {}
};

TEST_F(SynchronousFailingKernel, IsNamedByItsLaunch) {
  EXPECT_THAT(gpu_.launch(stops_, {{1}, {32}}, StopArguments{3}, stream_).message(),
              HasSubstr("kernel test_stop"));
}

class EndlessFailingKernel : public GpuTest {
 protected:
  EndlessFailingKernel() : GpuTest({.turns = {.most = 1000}}, {.kernel_seconds = 0.01}) {}
};

TEST_F(EndlessFailingKernel, IsNamed) {
  const auto spins = *gpu_.load(code("test_spin", &test_spin_emulated));
  ASSERT_TRUE(gpu_.launch(spins, {{1}, {32}}, SpinArguments{20'000'000}, stream_).ok());
  EXPECT_THAT(stream_.synchronize().message(), HasSubstr("kernel"));
  EXPECT_THAT(stream_.synchronize().message(), HasSubstr("test_spin"));
}

}  // namespace
}  // namespace recmill
