// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/workload.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "run/rank.h"
#include "run/tuning_data.h"
#include "store/tables/table_rows.h"

namespace recmill::bench {
namespace {

constexpr int64_t kFloatsOfLine = 16;

void set_initial_weights(int64_t t, const kernels::RowStorage& rows, ThreadPool& pool) {
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
               ThreadPool& pool) {
  kernels::TaskMap map;
  fused.map(batches.tasks(batch), pool.threads(), map);
  fused.run(batches.tasks(batch), map, pool);
}

Contender fused_contender(const kernels::FusedPool& fused, const PoolBatches& batches,
                          ThreadPool& pool, MappingTime* mapping) {
  return [&fused, &batches, &pool, mapping, tasks = std::vector<kernels::PoolTask>(),
          map = kernels::TaskMap()](std::span<const int64_t> order) mutable -> Result<double> {
    const Stopwatch watch;
    for (int64_t place : order) {
      const auto of_batch = batches.tasks(place % batches.count());
      tasks.assign(of_batch.begin(), of_batch.end());  // a store makes them anew
      const Stopwatch counting;
      fused.map(tasks, pool.threads(), map);
      if (mapping != nullptr) {
        mapping->seconds += counting.seconds();
        ++mapping->batches;
      }
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
  ThreadPool& pool = *made.pool;
  RECMILL_ASSIGN_OR_RETURN(
      made.tables,
      store::create_tables(run.spec, static_cast<uint64_t>(run.options.train.seed), 0, 1, pool));
  for (size_t t = 0; t < made.tables.size(); ++t) {
    if (run.spec.tables[t].precision != RowPrecision::float32)
      return Status::BadRequest("bench kernels: a table that is not float32");
    set_initial_weights(static_cast<int64_t>(t), made.tables[t].rows(), pool);
  }
  double seconds = 0.0;
  const train::BatchesRequest test{.seed = kTestSeed,
                                   .least = sizes.test_batches,
                                   .bytes = std::numeric_limits<int64_t>::max(),
                                   .samples = sizes.test_samples};
  RECMILL_ASSIGN_OR_RETURN(made.test_batches,
                           train::read_batches(run, test, pool, files, &seconds));
  made.reading_seconds = seconds / static_cast<double>(made.test_batches.size());
  if (sizes.tune_batches == 0) return made;
  const train::BatchesRequest tune{.seed = kTuneSeed, .least = sizes.tune_batches};
  RECMILL_ASSIGN_OR_RETURN(made.tune_batches, train::read_batches(run, tune, pool, files));
  return made;
}

std::vector<kernels::tune::PooledFeature> KernelWorkload::features() const {
  return train::pooled_features(run.spec, tables);
}

}  // namespace recmill::bench
