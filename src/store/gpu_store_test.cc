// SPDX-License-Identifier: Apache-2.0
// The store of a GPU: what every store must do, and the bits of the plain one.
#include "store/gpu_store.h"

#include <gtest/gtest.h>

#include "kernels/codegen/testing/test_code.h"
#include "store/store_contract.h"

namespace recmill::store {
namespace {

using kernels::codegen::compile_for_tests;

struct GpuFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, Pool& pool) {
    EmulatedGpu of;
    of.turns.order = seed % 2 == 0 ? emulation::Order::reverse : emulation::Order::forward;
    auto gpu = std::make_unique<Gpu>(recmill::testing::test_driver(of), GpuOptions{});
    RECMILL_ASSIGN_OR_RETURN(auto store,
                             GpuStore::create(model, seed, std::move(gpu),
                                              {.shards = 16, .compile = &compile_for_tests}, pool));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, StoreContract, GpuFixture);

TEST(GpuStore, SaysBeforehandWhatItHasNoMemoryFor) {
  EmulatedGpu of;  // a GPU of 100 KiB, which no machine has
  of.memory = 100 * 1024;
  Pool pool(1);
  ModelSpec model = testing::scenario_model();
  model.tables[3].name = "wide";
  model.tables[3].rows = 100000;
  const auto store =
      GpuStore::create(model, 1, std::make_unique<Gpu>(*make_emulated_driver(of), GpuOptions{}),
                       {.compile = &compile_for_tests}, pool);
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
