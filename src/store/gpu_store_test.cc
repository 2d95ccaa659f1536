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

/// A store whose outputs and gradients are in the GPU's memory, behind the seam of the host's. What
/// stands between rows is not written.
class StoreOnGpu final : public EmbeddingStore {
 public:
  StoreOnGpu(ModelSpec model, std::unique_ptr<GpuStore> store, Pool& pool)
      : model_(std::move(model)), store_(std::move(store)), stream_(pool, &store_->stream()) {}

  MemoryLedger need(const ModelSpec& model, const ClusterSpec& cluster) const override {
    return store_->need(model, cluster);
  }
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    auto of = std::make_unique<Of>();
    of->batch = batch;
    RECMILL_ASSIGN_OR_RETURN(of->prepared, store_->prepare(batch));
    return std::unique_ptr<Prepared>(std::move(of));
  }
  Status lookup(Prepared& prepared, Output output, Stream&) override {
    auto& of = static_cast<Of&>(prepared);
    Rows rows;
    RECMILL_RETURN_IF_ERROR(allocate(of, rows));
    std::ranges::fill(rows.host.as<float>(), kBetween);
    RECMILL_RETURN_IF_ERROR(store_->stream().to_device(rows.there, rows.host, rows.there.size()));
    std::vector<FeatureOutput> to;
    for (size_t f = 0; f < model_.features.size(); ++f)
      to.push_back({rows.there.address<float>() + rows.begins[f], stride(f)});
    RECMILL_RETURN_IF_ERROR(store_->lookup(*of.prepared, to, stream_));
    RECMILL_RETURN_IF_ERROR(store_->stream().to_host(rows.host, rows.there, rows.there.size()));
    RECMILL_RETURN_IF_ERROR(store_->stream().synchronize());
    for (size_t f = 0; f < model_.features.size(); ++f) {
      for (int64_t i = 0; i < rows_of(of, f); ++i) {
        const float* from = rows.host.as<float>().data() + rows.begins[f] + i * stride(f);
        std::copy_n(from, model_.dim_of(f), output[f].data + i * output[f].stride);
        EXPECT_EQ(from[model_.dim_of(f)], kBetween);
      }
    }
    return {};
  }
  Status update(std::span<const Update> updates, const Step& step, Stream&) override {
    std::vector<Rows> rows(updates.size());
    std::vector<std::vector<FeatureGradient>> there(updates.size());
    std::vector<Update> on_gpu;
    for (size_t u = 0; u < updates.size(); ++u) {
      auto& of = static_cast<Of&>(*updates[u].prepared);
      RECMILL_RETURN_IF_ERROR(allocate(of, rows[u]));
      for (size_t f = 0; f < model_.features.size(); ++f) {
        const FeatureGradient& from = updates[u].gradient[f];
        for (int64_t i = 0; i < rows_of(of, f); ++i)
          std::copy_n(from.data + i * from.stride, model_.dim_of(f),
                      rows[u].host.as<float>().data() + rows[u].begins[f] + i * stride(f));
        there[u].push_back({rows[u].there.address<float>() + rows[u].begins[f], stride(f)});
      }
      RECMILL_RETURN_IF_ERROR(
          store_->stream().to_device(rows[u].there, rows[u].host, rows[u].there.size()));
      on_gpu.push_back({of.prepared.get(), there[u]});
    }
    return store_->update(on_gpu, step, stream_);  // the memory is freed when it is not used
  }
  Status settle() override { return store_->settle(); }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept) override { return store_->snapshot(kept); }
  table::Extent extent(int table) const override { return store_->extent(table); }
  Status write_rows(const RowBlock& block) override { return store_->write_rows(block); }
  StoreStats stats() const override { return store_->stats(); }

 private:
  static constexpr float kBetween = 7.0f;
  struct Of final : Prepared {
    Batch batch;
    std::unique_ptr<Prepared> prepared;
  };
  struct Rows {
    std::vector<int64_t> begins;  // [features], floats
    PinnedBuffer host;
    GpuBuffer there;
  };
  int64_t stride(size_t feature) const { return (model_.dim_of(feature) + 4) / 4 * 4; }
  int64_t rows_of(const Of& of, size_t feature) const {
    const SparseBatch& sparse = *of.batch.sparse;
    return model_.features[feature].pooling != Pooling::none
               ? sparse.samples
               : sparse.features[feature].view(sparse.samples).lookups();
  }
  Status allocate(const Of& of, Rows& rows) {
    int64_t floats = 0;
    for (size_t f = 0; f < model_.features.size(); ++f) {
      rows.begins.push_back(floats);
      floats += rows_of(of, f) * stride(f);
    }
    const size_t bytes = static_cast<size_t>(floats) * sizeof(float);
    RECMILL_ASSIGN_OR_RETURN(rows.host, store_->gpu().allocate_pinned(bytes, "rows"));
    RECMILL_ASSIGN_OR_RETURN(rows.there, store_->gpu().allocate(bytes, "rows"));
    return {};
  }

  const ModelSpec model_;
  const std::unique_ptr<GpuStore> store_;
  Stream stream_;
};

struct OnGpuFixture {
  static constexpr bool kManyRanks = false;
  static Result<std::unique_ptr<EmbeddingStore>> make(const ModelSpec& model, uint64_t seed,
                                                      Communicator& communicator, Pool& pool) {
    RECMILL_ASSIGN_OR_RETURN(auto made, GpuFixture::make(model, seed, communicator, pool));
    std::unique_ptr<GpuStore> store(static_cast<GpuStore*>(made.release()));
    return std::unique_ptr<EmbeddingStore>(
        std::make_unique<StoreOnGpu>(model, std::move(store), pool));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(OnGpu, StoreContract, OnGpuFixture);

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
