// SPDX-License-Identifier: Apache-2.0
// A cache in a GPU's memory: what every store must do, the bits of the plain one, and what goes
// over the bus.
#include "store/gpu/cached_gpu_store.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/codegen/testing/recording_driver.h"
#include "kernels/codegen/testing/test_code.h"
#include "store/cached/testing/cached_fixture.h"
#include "store/store_contract.h"
#include "store/testing/caller_on_gpu.h"

namespace recmill::store {
namespace {

using recmill::testing::GpuCall;

Result<std::unique_ptr<CachedGpuStore>> make_cached_gpu(const ModelSpec& model, uint64_t seed,
                                                        bool late, ThreadPool& pool,
                                                        std::unique_ptr<GpuDriver> driver = nullptr,
                                                        GpuOptions options = {}) {
  EmulatedGpu of;
  of.turns.order = seed % 2 == 0 ? emulation::Order::reverse : emulation::Order::forward;
  if (driver == nullptr) driver = recmill::testing::test_driver(of);
  RECMILL_ASSIGN_OR_RETURN(auto home, testing::make_home(model, seed, late, pool));
  return CachedGpuStore::create(
      model, seed, std::move(home), std::make_shared<Gpu>(std::move(driver), options),
      {.slices = 16, .compile = &kernels::codegen::compile_for_tests}, pool);
}

/// Outputs and gradients of the host.
struct NoLookahead : testing::CachedFixture<0, 0, false> {
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto store, make_cached_gpu(model, seed, false, pool));
    return std::unique_ptr<EmbeddingStore>(std::move(store));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(NoLookahead, StoreContract, NoLookahead);

/// Outputs and gradients of the GPU, so that calls go on before it is done; a late home.
struct OnGpu : testing::CachedFixture<3, 2, true> {
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator&, ThreadPool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto store, make_cached_gpu(model, seed, true, pool));
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<testing::CallerOnGpu>(model, std::move(store), pool));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(OnGpu, StoreContract, OnGpu);

/// Whether training a scenario with so many bytes of slots gives the bits of the plain store; else
/// why.
std::string difference_with(testing::Scenario scenario, const lookahead::CacheOptions& options,
                            EmbeddingStore& store, ThreadPool& pool) {
  const auto expected = plain_trace(scenario);
  scenario.look_ahead = [&](const ModelSpec& model, int, auto steps, auto plans) {
    return testing::look_ahead(options, model, steps, plans);
  };
  testing::Trace trace(scenario);
  const Status status = testing::carry_out(scenario, store, 0, 1, pool, trace);
  return status.ok() ? trace.difference(*expected) : status.message();
}

/// Many tables in one slot table, of kRecord bytes a row.
constexpr int64_t kRecord = 64;
ModelSpec one_record_model() {
  ModelSpec model = testing::scenario_model();
  for (TableSpec& table : model.tables) {
    table.optimizer = {};
    table.optimizer.kind = OptimizerKind::adagrad;
    table.precision = RowPrecision::float32;
    table.frozen = false;
    table.dim = 8;
  }
  return model;
}

/// Bytes of records that the slots' kernels read and wrote, and those of the copies beside them.
struct Moved {
  int64_t in = 0, out = 0, copied_in = 0, copied_out = 0;
};
Moved moved_by(const std::vector<GpuCall>& calls) {
  Moved moved;
  const auto neighbour = [&](size_t i, int step) -> const GpuCall& {
    size_t at = i;
    do at += static_cast<size_t>(step);
    while (calls[at].stream != calls[i].stream);
    return calls[at];
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != GpuCall::Kind::launch || !calls[i].kernel.starts_with("record_copy"))
      continue;
    kernels::gpu::RecordCopyArguments of;
    RECMILL_CHECK(calls[i].arguments.size() == sizeof of);
    std::memcpy(&of, calls[i].arguments.data(), sizeof of);
    int64_t bytes = 0;
    for (const auto& list : of.lists) bytes += list.count * list.record_bytes;
    if (of.to_slots != 0) {
      const GpuCall& copy = neighbour(i, -1);
      EXPECT_EQ(copy.way, GpuCall::Way::to_device);
      moved.in += bytes;
      moved.copied_in += static_cast<int64_t>(copy.bytes);
    } else {
      const GpuCall& copy = neighbour(i, 1);
      EXPECT_EQ(copy.way, GpuCall::Way::to_host);
      moved.out += bytes;
      moved.copied_out += static_cast<int64_t>(copy.bytes);
    }
  }
  return moved;
}

TEST(CachedGpuStore, KeepsTheBitsWithTheLeastSlotsAndWithOneMore) {
  testing::Scenario scenario = testing::random_scenario(9, 12);
  scenario.model = one_record_model();
  ThreadPool pool(2);
  const auto difference = [&](const lookahead::CacheOptions& options) {
    const auto store = make_cached_gpu(scenario.model, scenario.seed, true, pool);
    return store.ok() ? difference_with(scenario, options, **store, pool)
                      : store.status().message();
  };
  for (const int64_t prefetch : {0, 4}) {
    lookahead::CacheOptions options{.lookahead = 200, .prefetch = prefetch, .cache = 1};
    std::string refusal = difference(options);
    for (size_t at; (at = refusal.find("needs at least ")) != std::string::npos;) {
      options.cache = std::stoll(refusal.substr(at + 15));
      refusal = difference(options);
    }
    EXPECT_EQ(refusal, "") << "P " << prefetch;
    *options.cache -= 1;
    EXPECT_NE(difference(options).find("needs at least "), std::string::npos);
    *options.cache += 1 + GpuSlotStore::slot_bytes(scenario.model, SlotTables(scenario.model))[0];
    EXPECT_EQ(difference(options), "");
  }
}

/// Slots and what prepares batches are allocated on one thread, what brings rows on another one.
TEST(CachedGpuStore, EndsWithTheBitsOrALineWhateverMemoryThereIs) {
  if (recmill::testing::on_cuda()) GTEST_SKIP() << "GPUs of little memory, which no machine has";
  testing::Scenario scenario = testing::training_scenario(7, 4);
  scenario.model = one_record_model();
  ThreadPool pool(2);
  int trained = 0, refused = 0;
  for (const bool pinned : {false, true}) {
    for (int64_t bytes = 1 << 12; bytes <= 1 << 25; bytes *= 2) {
      EmulatedGpu of;
      (pinned ? of.pinned_memory : of.memory) = bytes;
      const auto store = make_cached_gpu(scenario.model, scenario.seed, true, pool,
                                         recmill::testing::test_driver(of));
      const std::string why =
          store.ok() ? difference_with(scenario,
                                       {.lookahead = 4, .prefetch = 2, .cache = testing::kPlenty},
                                       **store, pool)
                     : store.status().message();
      if (why.empty()) {
        ++trained;
      } else {
        ++refused;
        EXPECT_TRUE(why.find(" MiB") != std::string::npos ||
                    why.find(" bytes") != std::string::npos)
            << why;
        EXPECT_EQ(why.find('\n'), std::string::npos) << why;
      }
    }
  }
  EXPECT_GT(trained, 3);
  EXPECT_GT(refused, 10);
}

TEST(CachedGpuStore, MovesTheRecordsOfRowsOverTheBusAndNothingElseOfThem) {
  testing::Scenario scenario = testing::training_scenario(4, 20);
  scenario.model = one_record_model();
  for (auto& operation : scenario.operations)  // no rows go home but by plans
    if (operation.kind != testing::Operation::Kind::train)
      operation = {testing::Operation::Kind::evaluate, {9}, 1.0, 0};
  ThreadPool pool(2);
  std::vector<GpuCall> calls;
  auto store = make_cached_gpu(
      scenario.model, scenario.seed, true, pool,
      std::make_unique<recmill::testing::RecordingDriver>(recmill::testing::test_driver(), calls));
  ASSERT_TRUE(store.ok()) << store.status().message();
  const ModelSpec& model = scenario.model;
  const int64_t slot = GpuSlotStore::slot_bytes(model, SlotTables(model))[0];
  EXPECT_EQ(difference_with(scenario, {.lookahead = 4, .prefetch = 1, .cache = 7000 * slot},
                            **store, pool),
            "");
  const MovedRows rows = (*store)->stats().moved;
  store->reset();
  const Moved moved = moved_by(calls);
  EXPECT_GT(rows.written_back, 0);
  EXPECT_EQ(moved.in, rows.fetched * kRecord);
  EXPECT_EQ(moved.in, moved.copied_in);
  EXPECT_GE(moved.out, rows.written_back * kRecord);  // at the end more go home, by no plan
  EXPECT_EQ(moved.out, moved.copied_out);
}

}  // namespace
}  // namespace recmill::store
