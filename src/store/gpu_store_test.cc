// SPDX-License-Identifier: Apache-2.0
// The store of a GPU on the emulator: what every store must do, and the bits of the plain one.
#include "store/gpu_store.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "device/gpu/emulated_driver.h"
#include "store/store_contract.h"

namespace recmill::store {
namespace {

/// One folder of compiled kernels for all tests of this process.
Result<std::vector<kernels::codegen::GpuCode>> compile(
    std::span<const kernels::codegen::GpuSource> sources) {
  static const TemporaryFolder folder;
  kernels::codegen::LibraryCacheOptions options;
  options.folder = folder.path();
  options.compiler.program = RECMILL_COMPILER;
  kernels::codegen::LibraryCache cache(options, posix_files());
  return kernels::codegen::emulated_code(sources, cache);
}

struct EmulatedFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, Pool& pool) {
    EmulatedGpu of;
    of.turns.order = seed % 2 == 0 ? emulation::Order::reverse : emulation::Order::forward;
    RECMILL_ASSIGN_OR_RETURN(auto driver, make_emulated_driver(of));
    RECMILL_ASSIGN_OR_RETURN(
        auto store,
        GpuStore::create(model, seed, std::make_unique<Gpu>(std::move(driver), GpuOptions{}),
                         {.compile = &compile}, pool));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Emulated, StoreContract, EmulatedFixture);

TEST(GpuStore, SaysBeforehandWhatItHasNoMemoryFor) {
  EmulatedGpu of;
  of.memory = 100 * 1024;
  Pool pool(1);
  ModelSpec model = testing::scenario_model();
  model.tables[3].name = "wide";
  model.tables[3].rows = 100000;
  const auto store = GpuStore::create(
      model, 1, std::make_unique<Gpu>(*make_emulated_driver(of), GpuOptions{}), {.compile = &compile}, pool);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), Status::Code::bad_request);
  EXPECT_EQ(store.status().message().rfind("rows take ", 0), 0u) << store.status().message();
  EXPECT_NE(store.status().message().find(
                "of the GPU's memory, of which 0.1 MiB are free; the largest table is 'wide' with"),
            std::string::npos)
      << store.status().message();
}

}  // namespace
}  // namespace recmill::store
