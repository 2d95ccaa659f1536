// SPDX-License-Identifier: Apache-2.0
// What kernels are tuned and timed on: a run's tables, and batches of its own data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "kernels/tune/pool_subject.h"
#include "run/resolved_run.h"
#include "table/embedding_table.h"
#include "table/update_subject.h"

namespace recmill::train {

struct BatchesRequest {
  uint64_t seed = 1000;
  int64_t least = 8;  // batches; small ones are more, read_batches() says how many
  int64_t most = 256;
  int64_t bytes = int64_t{3} << 29;   // fewer batches where their ids take more than this
  std::vector<int64_t> samples = {};  // of each batch; empty: as [tune] says
};

/// Batches of the run's data, of the sizes that [tune] names; one at least. Small ones are so many
/// that a pass over them reads 256 MiB, but `most` at most: the rows of few would stay in a cache,
/// where training does not find them. Adds the seconds of reading to `seconds`, where it is given.
Result<std::vector<SparseBatch>> read_batches(const ResolvedRun& run, const BatchesRequest& request,
                                              ThreadPool& pool, Files& files,
                                              double* seconds = nullptr);

/// Samples of the first batch; of those that [tune] sizes the largest of eight.
int64_t first_batch_samples(const ResolvedRun& run, const BatchesRequest& request);

struct TuningData {
  std::vector<table::EmbeddingTable> tables;  // [tables], with initial rows
  std::vector<SparseBatch> batches;

  static Result<TuningData> make(const ResolvedRun& run, const BatchesRequest& request,
                                 ThreadPool& pool, Files& files);
};

/// One a feature of `spec`.
std::vector<kernels::tune::PooledFeature> pooled_features(
    const ModelSpec& spec, std::span<const table::EmbeddingTable> tables);

/// The run's lookups as what is tuned; `tables` and `batches` outlive it.
Result<std::unique_ptr<kernels::tune::PoolSubject>> make_pool_subject(
    const ResolvedRun& run, std::span<const table::EmbeddingTable> tables,
    std::span<const SparseBatch> batches, Files& files = posix_files());

/// The fused-kernel-wide values that are compared, at most eight: the default schedules; tasks
/// small or whole, and how much of a core's own cache a schedule may count on.
std::vector<kernels::tune::FusedParameters> fused_values(int64_t l2_bytes);

/// The updates of the run's tables as what is tuned; the same holds.
Result<std::unique_ptr<table::UpdateSubject>> make_update_subject(
    const ResolvedRun& run, std::span<table::EmbeddingTable> tables,
    std::span<const SparseBatch> batches);

/// The values that are compared for updates: the default schedules; what a task works through. A
/// task of a table has a core's whole cache.
std::vector<kernels::tune::FusedParameters> update_values(int64_t l2_bytes);

}  // namespace recmill::train
