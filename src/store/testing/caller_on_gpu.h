// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "batch/feature_layout.h"
#include "store/gpu/store_on_gpu.h"
#include "store/testing/forwarding_store.h"

namespace recmill::store::testing {

/// A store that is given outputs and gradients in the GPU's memory, behind the seam of the host's.
/// What is between rows is not written.
class CallerOnGpu final : public ForwardingStore {
 public:
  CallerOnGpu(ModelSpec model, std::unique_ptr<StoreOnGpu> store, ThreadPool& pool)
      : ForwardingStore(std::move(store)),
        model_(std::move(model)),
        stream_(pool, &on_gpu().stream()) {}

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    auto of = std::make_unique<Of>();
    of->batch = batch;
    RECMILL_ASSIGN_OR_RETURN(of->prepared, inner().prepare(batch));
    return std::unique_ptr<Prepared>(std::move(of));
  }
  Status lookup(Prepared& prepared, Output output, Stream&) override {
    auto& of = static_cast<Of&>(prepared);
    Rows rows;
    RECMILL_RETURN_IF_ERROR(allocate(of, rows));
    std::ranges::fill(rows.host.as<float>(), kBetween);
    RECMILL_RETURN_IF_ERROR(on_gpu().stream().to_device(rows.there, rows.host, rows.there.size()));
    std::vector<FeatureOutput> to;
    for (size_t f = 0; f < model_.features.size(); ++f)
      to.push_back({rows.there.address<float>() + rows.begins[f], stride(f)});
    RECMILL_RETURN_IF_ERROR(inner().lookup(*of.prepared, to, stream_));
    RECMILL_RETURN_IF_ERROR(on_gpu().stream().to_host(rows.host, rows.there, rows.there.size()));
    RECMILL_RETURN_IF_ERROR(on_gpu().wait(on_gpu().stream()));
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
    std::vector<Update> given;
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
          on_gpu().stream().to_device(rows[u].there, rows[u].host, rows[u].there.size()));
      given.push_back({of.prepared.get(), there[u]});
    }
    return inner().update(given, step, stream_);  // the memory is freed when it is not used
  }

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
  StoreOnGpu& on_gpu() const { return static_cast<StoreOnGpu&>(inner()); }
  int64_t stride(size_t feature) const { return (model_.dim_of(feature) + 4) / 4 * 4; }
  int64_t rows_of(const Of& of, size_t feature) const {
    const SparseBatch& sparse = *of.batch.sparse;
    return rows_out(model_.features[feature].pooling,
                    sparse.features[feature].view(sparse.samples));
  }
  Status allocate(const Of& of, Rows& rows) {
    int64_t floats = 0;
    for (size_t f = 0; f < model_.features.size(); ++f) {
      rows.begins.push_back(floats);
      floats += rows_of(of, f) * stride(f);
    }
    const size_t bytes = static_cast<size_t>(floats) * sizeof(float);
    RECMILL_ASSIGN_OR_RETURN(rows.host, on_gpu().gpu().allocate_pinned(bytes, "rows"));
    RECMILL_ASSIGN_OR_RETURN(rows.there, on_gpu().gpu().allocate(bytes, "rows"));
    return {};
  }

  const ModelSpec model_;
  Stream stream_;
};

}  // namespace recmill::store::testing
