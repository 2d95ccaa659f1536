// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/kernels/workload.h"

#include <algorithm>

#include "base/clock.h"
#include "store/table_rows.h"
#include "train/historical_batches.h"
#include "train/rank.h"
#include "train/tuning_data.h"

namespace recmill::cli {
namespace {

constexpr int64_t kFloatsOfLine = 16;
/// A pass over the batches reads this many bytes at least, far more than caches hold, so that the
/// next one finds little of them there; unless that takes more than kMostBatches.
constexpr int64_t kPassBytes = int64_t{256} << 20;
constexpr int64_t kMostBatches = 256;

/// Of rows, ids and offsets.
int64_t bytes_read(const ModelSpec& spec, const SparseBatch& batch) {
  int64_t bytes = 0;
  for (size_t f = 0; f < batch.features.size(); ++f) {
    const auto& feature = batch.features[f];
    const int64_t row_bytes = spec.tables[spec.features[f].table].dim * int64_t{sizeof(float)};
    bytes += static_cast<int64_t>(feature.rows.size()) * (8 + row_bytes);
    bytes += static_cast<int64_t>(feature.offsets.size()) * 8;
  }
  return bytes;
}

void set_initial_weights(int64_t t, const kernels::RowStorage& rows, Pool& pool) {
  pool.run_ranges(rows.count, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      auto* weights = reinterpret_cast<float*>(rows.record(row));
      for (int64_t e = 0; e < rows.dim; ++e) weights[e] = initial_weight(t, row, e);
    }
  });
}

}  // namespace

Status write_initial_rows(const ModelSpec& spec, store::EmbeddingStore& store) {
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    const TableSpec& table = spec.tables[t];
    std::vector<float> weights(table.rows * table.dim);
    for (int64_t i = 0; i < table.rows * table.dim; ++i)
      weights[i] = initial_weight(static_cast<int64_t>(t), i / table.dim, i % table.dim);
    RECMILL_RETURN_IF_ERROR(store.write_rows({static_cast<int>(t), 0, table.rows, weights, {}}));
  }
  return {};
}

Result<PoolBatches> PoolBatches::make(std::span<const kernels::tune::PooledFeature> features,
                                      std::span<const SparseBatch> batches) {
  PoolBatches made;
  made.batches_ = batches;
  for (const auto& feature : features) made.columns_ += feature.rows.dim;
  made.stride_ = (made.columns_ + kFloatsOfLine - 1) / kFloatsOfLine * kFloatsOfLine;
  int64_t samples = 0;
  for (const SparseBatch& batch : batches) samples = std::max(samples, batch.samples);
  RECMILL_ASSIGN_OR_RETURN(made.output_, Buffer::allocate(samples * made.stride_ * sizeof(float)));
  for (const SparseBatch& batch : batches) {
    auto& tasks = made.tasks_.emplace_back();
    float* out = made.output_.as<float>().data();
    for (size_t f = 0; f < features.size(); ++f) {
      const auto& feature = features[f];
      tasks.push_back({batch.features[f].view(batch.samples), feature.rows, feature.pooling, out,
                       made.stride_});
      out += feature.rows.dim;
    }
  }
  return made;
}

std::span<const float> PoolBatches::output(int64_t sample) const {
  return output_.as<float>().subspan(sample * stride_, columns_);
}

void run_fused(const kernels::FusedPool& fused, const PoolBatches& batches, int64_t batch,
               Pool& pool) {
  kernels::TaskMap map;
  fused.map(batches.tasks(batch), pool.threads(), map);
  fused.run(batches.tasks(batch), map, pool);
}

Contender fused_contender(const kernels::FusedPool& fused, const PoolBatches& batches, Pool& pool,
                          double* mapping) {
  return [&fused, &batches, &pool, mapping, tasks = std::vector<kernels::PoolTask>(),
          map = kernels::TaskMap()](std::span<const int64_t> order) mutable -> Result<double> {
    const Stopwatch watch;
    for (int64_t place : order) {
      const auto of_batch = batches.tasks(place % batches.count());
      tasks.assign(of_batch.begin(), of_batch.end());  // a store makes them anew
      const Stopwatch counting;
      fused.map(tasks, pool.threads(), map);
      if (mapping != nullptr) *mapping += counting.seconds();
      fused.run(tasks, map, pool);
    }
    return watch.seconds();
  };
}

Result<KernelWorkload> KernelWorkload::make(const train::ResolvedRun& run,
                                            const WorkloadSizes& sizes, Files& files) {
  KernelWorkload made;
  made.run = run;
  made.pool = train::make_pool(run.threads);
  Pool& pool = *made.pool;
  RECMILL_ASSIGN_OR_RETURN(
      made.tables,
      store::create_tables(run.spec, static_cast<uint64_t>(run.options.train.seed), 0, 1, pool));
  for (size_t t = 0; t < made.tables.size(); ++t) {
    if (run.spec.tables[t].precision != RowPrecision::float32)
      return Status::BadRequest("bench kernels: a table that is not float32");
    set_initial_weights(static_cast<int64_t>(t), made.tables[t].rows(), pool);
  }
  RECMILL_RETURN_IF_ERROR(made.read_test_batches(sizes, files));
  if (sizes.tune_batches == 0) return made;
  train::BatchesRequest tune{.seed = kTuneSeed, .most = sizes.tune_batches};
  if (sizes.test_samples.empty())
    tune.most = std::max(tune.most, static_cast<int64_t>(made.test_batches.size()));
  RECMILL_ASSIGN_OR_RETURN(made.tune_batches, train::read_batches(run, tune, pool, files));
  return made;
}

Status KernelWorkload::read_test_batches(const WorkloadSizes& sizes, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(auto source,
                           train::HistoricalBatches::open(run, kTestSeed, *pool, files));
  const auto& samples = sizes.test_samples;
  const int64_t least = samples.empty() ? sizes.test_batches : static_cast<int64_t>(samples.size());
  const int64_t most = samples.empty() ? std::max(least, kMostBatches) : least;
  const Stopwatch watch;
  int64_t bytes = 0;
  for (int64_t i = 0; i < least || (i < most && bytes < kPassBytes); ++i) {
    test_batches.emplace_back();
    RECMILL_RETURN_IF_ERROR(source.next(
        samples.empty() ? train::tune_batch_size(run.options, kTestSeed, i) : samples[i],
        test_batches.back()));
    bytes += bytes_read(run.spec, test_batches.back());
  }
  reading_seconds = watch.seconds() / static_cast<double>(test_batches.size());
  return {};
}

std::vector<kernels::tune::PooledFeature> KernelWorkload::features() const {
  return train::pooled_features(run.spec, tables);
}

}  // namespace recmill::cli
