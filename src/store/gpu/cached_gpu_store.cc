// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/cached_gpu_store.h"

#include <utility>
#include <vector>

#include "batch/feature_layout.h"

namespace recmill::store {

Result<std::unique_ptr<CachedGpuStore>> CachedGpuStore::create(ModelSpec model, uint64_t seed,
                                                               const CacheHomeRows& home,
                                                               std::shared_ptr<Gpu> gpu,
                                                               const GpuStoreKernels& kernels,
                                                               ThreadPool& pool) {
  std::unique_ptr<CachedGpuStore> store(new CachedGpuStore(model, std::move(gpu), pool));
  RECMILL_ASSIGN_OR_RETURN(store->stream_, store->gpu_->open_stream());
  RECMILL_ASSIGN_OR_RETURN(store->copier_,
                           kernels::GpuRowCopier::make(*store->gpu_, kernels.compile));
  store->cached_ = std::make_unique<CachedStore>(
      std::move(model), seed, home, pool,
      GpuSlotStore::maker(seed, store->gpu_, kernels, pool, store->stream_));
  return store;
}

Status CachedGpuStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  RECMILL_CHECK(stream.gpu() == nullptr || stream.gpu() == &stream_);
  if (stream.gpu() != nullptr && CachedStore::is_outside(prepared))
    return lookup_outside(prepared, output);
  return cached_->lookup(prepared, output, stream);
}

/// On the host, whose pooling has the same bits, and copied from there.
Status CachedGpuStore::lookup_outside(Prepared& prepared, Output output) {
  const SparseBatch& sparse = *CachedStore::batch_of(prepared).sparse;
  std::vector<int64_t> rows, begins{0};  // by feature; floats
  for (size_t f = 0; f < model_.features.size(); ++f) {
    rows.push_back(rows_out(model_.features[f].pooling, sparse.features[f].view(sparse.samples)));
    begins.push_back(begins.back() + rows[f] * model_.dim_of(f));
  }
  const size_t bytes = static_cast<size_t>(begins.back()) * sizeof(float);
  const std::lock_guard lock(outside_);
  RECMILL_RETURN_IF_ERROR(reserve(outputs_, bytes, *gpu_, "rows looked up by a batch"));
  RECMILL_RETURN_IF_ERROR(reserve(outputs_of_host_, bytes, *gpu_, "rows looked up by a batch"));
  std::vector<FeatureOutput> of_host;
  std::vector<kernels::gpu::RowCopy> copies;
  for (size_t f = 0; f < model_.features.size(); ++f) {
    const int64_t dim = model_.dim_of(f);
    of_host.push_back({outputs_of_host_.as<float>().data() + begins[f], dim});
    copies.push_back({outputs_.address<float>() + begins[f], output[f].data, dim, output[f].stride,
                      rows[f], dim});
  }
  Stream host(pool_);
  RECMILL_RETURN_IF_ERROR(cached_->lookup(prepared, of_host, host));
  RECMILL_RETURN_IF_ERROR(stream_.to_device(outputs_, outputs_of_host_, bytes));
  RECMILL_RETURN_IF_ERROR(copier_->copy(copies, stream_));
  return stream_.synchronize();
}

}  // namespace recmill::store
