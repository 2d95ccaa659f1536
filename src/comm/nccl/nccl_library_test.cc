// SPDX-License-Identifier: Apache-2.0
// NCCL as load_nccl() finds it: over a stand-in of the library, and the library itself where it is.
#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "comm/nccl/emulated_nccl.h"
#include "comm/nccl/nccl_world.h"
#include "comm/nccl/testing/fake_nccl.h"
#include "comm/threads.h"
#include "device/gpu/cuda_driver.h"
#include "device/gpu/emulated_driver.h"
#include "device/gpu/testing/fake_cuda.h"

namespace recmill {
namespace {

using testing::FakeCuda;
using testing::FakeNccl;
using ::testing::HasSubstr;

class NcclLibraryTest : public ::testing::Test {
 protected:
  NcclLibraryTest() {
    library_ = dlopen(RECMILL_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    RECMILL_CHECK(library_ != nullptr, dlerror());
    fake_ = static_cast<FakeNccl*>(dlsym(library_, "fake_nccl"));
    *fake_ = {.api = emulated_nccl()};
  }
  ~NcclLibraryTest() override { dlclose(library_); }

  void* library_ = nullptr;
  FakeNccl* fake_ = nullptr;
};

TEST_F(NcclLibraryTest, CallsEachFunctionAsWhatItIs) {
  const auto api = load_nccl(RECMILL_FAKE_NCCL);
  ASSERT_TRUE(api.ok()) << api.status().message();
  const auto open = [](int) -> Result<std::unique_ptr<Gpu>> {
    return std::make_unique<Gpu>(*make_emulated_driver({}), GpuOptions{});
  };
  NcclWorld world(std::make_unique<ThreadsWorld>(), {*api, open, {}});
  const Status status = world.run(2, [](Communicator& communicator) -> Status {
    const int rank = communicator.rank();
    const auto own = std::as_bytes(std::span(&rank, 1));
    RECMILL_ASSIGN_OR_RETURN(const Received all, communicator.all_gather(own));
    RECMILL_ASSIGN_OR_RETURN(const Received each, communicator.all_to_all(std::vector(2, own)));
    for (int from = 0; from < 2; ++from) {
      EXPECT_EQ(std::memcmp(all.from(from).data(), &from, sizeof from), 0);
      EXPECT_EQ(std::memcmp(each.from(from).data(), &from, sizeof from), 0);
    }
    communicator.abort(Status::Failed("no more"));
    return Status::Failed("no more");
  });
  EXPECT_THAT(status.message(), HasSubstr("no more"));
}

TEST_F(NcclLibraryTest, SaysWhyThereIsNone) {
  EXPECT_THAT(load_nccl("libno_nccl.so.2").status().message(),
              HasSubstr("no NCCL: libno_nccl.so.2"));
  EXPECT_EQ(load_nccl("libm.so.6").status().message(), "NCCL, libm.so.6, has no ncclGetVersion");
  fake_->version = 21300;
  EXPECT_EQ(load_nccl(RECMILL_FAKE_NCCL).status().message(),
            std::string(RECMILL_FAKE_NCCL) + " is NCCL 2.13.0: 2.14.0 is the least");
  fake_->version = 2804;
  EXPECT_THAT(load_nccl(RECMILL_FAKE_NCCL).status().message(), HasSubstr("is NCCL 2.8.4: "));
}

nccl::Comm made = nullptr;  // by keeping_nccl(), last: to be ended after a test

nccl::Api keeping_nccl() {
  nccl::Api api = emulated_nccl();
  api.init = [](nccl::Comm* comm, int ranks, nccl::UniqueId id, int rank, nccl::Config* config) {
    const auto result = emulated_nccl().init(comm, ranks, id, rank, config);
    made = *comm;
    return result;
  };
  return api;
}

// Its end waits for what is before its messages.
TEST(NcclLibrary, IsNotEndedWhereAKernelDoesNotEnd) {
  static int aborted;
  nccl::Api api = keeping_nccl();
  api.abort = [](nccl::Comm) { return ++aborted * 0; };
  void* const library = dlopen(RECMILL_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* const cuda = static_cast<FakeCuda*>(dlsym(library, "fake_cuda"));
  for (const bool is_stuck : {false, true}) {
    *cuda = {};
    aborted = 0;
    const Status status = run_ranks(1, [&](Communicator& hosts) -> Status {
      RECMILL_ASSIGN_OR_RETURN(auto driver, make_cuda_driver({.library = RECMILL_FAKE_CUDA}));
      const auto gpu = std::make_shared<Gpu>(std::move(driver), GpuOptions{});
      RECMILL_ASSIGN_OR_RETURN(auto stream, gpu->open_stream());
      RECMILL_ASSIGN_OR_RETURN(
          const auto communicator,
          NcclCommunicator::make(api, gpu, {std::shared_ptr<void>(), &hosts}, {}));
      cuda->error = 719;
      cuda->stuck = is_stuck;
      if (is_stuck) gpu->driver().give_up();
      return communicator->wait(stream, [] { return true; });
    });
    EXPECT_THAT(status.message(), HasSubstr(is_stuck ? "given up" : "CUDA error 719"));
    EXPECT_EQ(aborted, is_stuck ? 0 : 1);
    EXPECT_EQ(emulated_nccl().abort(made), 0);
  }
  EXPECT_EQ(cuda->hung, 0);
  dlclose(library);
}

// What does not end may be found by a wait for others, whose time is shorter.
TEST(NcclLibrary, IsLeftWhereItsEndDoesNotCome) {
  static std::atomic<bool> may_end;
  may_end = false;
  nccl::Api api = keeping_nccl();
  api.abort = [](nccl::Comm) {
    may_end.wait(false);
    return 0;
  };
  void* const library = dlopen(RECMILL_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* const cuda = static_cast<FakeCuda*>(dlsym(library, "fake_cuda"));
  *cuda = {};
  const Status status = run_ranks(1, [&](Communicator& hosts) -> Status {
    RECMILL_ASSIGN_OR_RETURN(auto driver, make_cuda_driver({.library = RECMILL_FAKE_CUDA}));
    const auto gpu = std::make_shared<Gpu>(std::move(driver), GpuOptions{.kernel_seconds = 0.05});
    RECMILL_ASSIGN_OR_RETURN(auto stream, gpu->open_stream());
    RECMILL_ASSIGN_OR_RETURN(const auto communicator,
                             NcclCommunicator::make(api, gpu, {std::shared_ptr<void>(), &hosts},
                                                    {.limit_seconds = 0.01}));
    cuda->stuck = true;
    return communicator->wait(stream, [] { return true; });
  });
  EXPECT_THAT(status.message(), HasSubstr("no answer in 0.01 s"));
  EXPECT_THAT(status.message(),
              HasSubstr("; here, what was enqueued before is not done after 0.05 s"));
  EXPECT_EQ(cuda->hung, 0);
  may_end = true;
  may_end.notify_all();
  EXPECT_EQ(emulated_nccl().abort(made), 0);
  dlclose(library);
}

TEST(NcclLibrary, IsLoadedWhereItIs) {
  const auto api = load_nccl();
  if (!api.ok()) GTEST_SKIP() << api.status().message();
  EXPECT_THAT(api->error_string(nccl::kInvalidArgument), HasSubstr("invalid argument"));
  EXPECT_THAT(api->error_string(nccl::kInvalidUsage), HasSubstr("invalid usage"));
  EXPECT_THAT(api->error_string(nccl::kRemoteError), HasSubstr("remote"));
  EXPECT_THAT(api->error_string(nccl::kInProgress), HasSubstr("in progress"));
  nccl::UniqueId a, b;
  ASSERT_EQ(api->unique_id(&a), 0);
  ASSERT_EQ(api->unique_id(&b), 0);
  EXPECT_NE(std::memcmp(a.bytes, b.bytes, sizeof a.bytes), 0);
  EXPECT_EQ(api->group_start(), 0);
  EXPECT_EQ(api->group_end(), 0);
}

}  // namespace
}  // namespace recmill
