// SPDX-License-Identifier: Apache-2.0
#include "run/tuning_data.h"

#include <algorithm>

#include "base/clock.h"
#include "device/processor.h"
#include "run/generated_code.h"
#include "run/historical_batches.h"
#include "store/tables/table_rows.h"

namespace recmill::train {

using kernels::tune::FusedParameters;
using kernels::tune::PooledFeature;
using kernels::tune::PoolSubject;

namespace {

/// Far more than caches hold, so that a pass finds little of the one before it there.
constexpr int64_t kPassBytes = int64_t{256} << 20;

/// Of ids and offsets.
int64_t bytes_held(const SparseBatch& batch) {
  int64_t bytes = 0;
  for (const SparseFeature& feature : batch.features)
    bytes += static_cast<int64_t>((feature.rows.size() + feature.offsets.size()) * sizeof(int64_t));
  return bytes;
}

/// Of rows, by each lookup.
int64_t row_bytes(const ModelSpec& spec, const SparseBatch& batch) {
  int64_t bytes = 0;
  for (size_t f = 0; f < batch.features.size(); ++f) {
    const int64_t dim = spec.tables[spec.features[f].table].dim;
    bytes += std::ssize(batch.features[f].rows) * dim * int64_t{sizeof(float)};
  }
  return bytes;
}

int64_t samples_of(const ResolvedRun& run, const BatchesRequest& request, int64_t batch) {
  if (!request.samples.empty()) return request.samples[batch];
  return std::max<int64_t>(1, tune_batch_size(run.options, request.seed, batch));
}

}  // namespace

int64_t first_batch_samples(const ResolvedRun& run, const BatchesRequest& request) {
  return samples_of(run, request, 0);
}

Result<std::vector<SparseBatch>> read_batches(const ResolvedRun& run, const BatchesRequest& request,
                                              ThreadPool& pool, Files& files, double* seconds) {
  RECMILL_ASSIGN_OR_RETURN(auto source, HistoricalBatches::open(run, request.seed, pool, files));
  const auto& sizes = request.samples;
  const int64_t least = sizes.empty() ? request.least : std::ssize(sizes);
  const int64_t most = sizes.empty() ? std::max(least, request.most) : least;
  std::vector<SparseBatch> batches;
  const Stopwatch watch;
  int64_t held = 0, read = 0;
  for (int64_t i = 0; i < most && held < request.bytes && (i < least || read < kPassBytes); ++i) {
    batches.emplace_back();
    RECMILL_RETURN_IF_ERROR(source.next(samples_of(run, request, i), batches.back()));
    const int64_t bytes = bytes_held(batches.back());
    held += bytes;
    read += bytes + row_bytes(run.spec, batches.back());
  }
  if (seconds != nullptr) *seconds += watch.seconds();
  return batches;
}

Result<TuningData> TuningData::make(const ResolvedRun& run, const BatchesRequest& request,
                                    ThreadPool& pool, Files& files) {
  TuningData data;
  RECMILL_ASSIGN_OR_RETURN(data.batches, read_batches(run, request, pool, files));
  RECMILL_ASSIGN_OR_RETURN(
      data.tables,
      store::create_tables(run.spec, static_cast<uint64_t>(run.options.train.seed), 0, 1, pool));
  return data;
}

std::vector<PooledFeature> pooled_features(const ModelSpec& spec,
                                           std::span<const table::EmbeddingTable> tables) {
  std::vector<PooledFeature> features;
  for (const FeatureSpec& feature : spec.features)
    features.push_back({tables[feature.table].rows(), feature.pooling, feature.weighted});
  return features;
}

Result<std::unique_ptr<PoolSubject>> make_pool_subject(
    const ResolvedRun& run, std::span<const table::EmbeddingTable> tables,
    std::span<const SparseBatch> batches, Files& files) {
  kernels::tune::PoolSubjectOptions options;
  options.device.shared_cache_bytes = this_processor().shared_cache_bytes;
  RECMILL_ASSIGN_OR_RETURN(options.templates, pool_templates_of(run.options.kernels, files));
  options.deterministic = run.options.train.deterministic;
  options.threads = run.threads;
  return PoolSubject::make(pooled_features(run.spec, tables), batches, options);
}

std::vector<FusedParameters> fused_values(int64_t l2_bytes) {
  std::vector<FusedParameters> values{{kernels::kWholeFeature, 0, true}};
  for (int64_t tile : {int64_t{128}, int64_t{4096}}) {
    for (int64_t bytes : {int64_t{0}, l2_bytes / 2, l2_bytes * 7 / 8})
      values.push_back({tile, bytes});
  }
  return values;
}

Result<std::unique_ptr<table::UpdateSubject>> make_update_subject(
    const ResolvedRun& run, std::span<table::EmbeddingTable> tables,
    std::span<const SparseBatch> batches) {
  table::UpdateSubjectOptions options;
  options.threads = run.threads;
  options.slices = run.slices;
  return table::UpdateSubject::make(run.spec, tables, batches, options);
}

std::vector<FusedParameters> update_values(int64_t l2_bytes) {
  return {{table::kTaskFloats, l2_bytes, true},
          {1 << 14, l2_bytes},
          {1 << 16, l2_bytes},
          {1 << 18, l2_bytes}};
}

}  // namespace recmill::train
