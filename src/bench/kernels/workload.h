// SPDX-License-Identifier: Apache-2.0
// What `bench kernels` works on: a run's tables with rows that a rival makes by the same formula,
// batches of its data, and all features of a batch as tasks of one output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "bench/alternation.h"
#include "device/buffer.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "kernels/tune/pool_subject.h"
#include "run/resolved_run.h"
#include "store/embedding_store.h"
#include "table/embedding_table.h"

namespace recmill::bench {

constexpr uint64_t kTuneSeed = 1000, kTestSeed = 5000;  // of batches

/// Element e of a row that every side starts from, exact in float32.
inline float initial_weight(int64_t table, int64_t row, int64_t e) {
  return static_cast<float>((row + 131 * table) % 8191) * 0x1p-20f +
         static_cast<float>(e) * 0x1p-12f;
}

/// Writes them to every table of a store.
Status write_initial_rows(const ModelSpec& spec, store::EmbeddingStore& store);

/// Batches as tasks that write one output, [samples][columns] at a stride of whole cache lines.
class PoolBatches {
 public:
  /// `batches` outlive it.
  static Result<PoolBatches> make(std::span<const kernels::tune::PooledFeature> features,
                                  std::span<const SparseBatch> batches);

  int64_t count() const { return static_cast<int64_t>(tasks_.size()); }
  int64_t samples(int64_t batch) const { return batches_[batch].samples; }
  int64_t columns() const { return columns_; }
  std::span<const kernels::PoolTask> tasks(int64_t batch) const { return tasks_[batch]; }
  std::span<const SparseBatch> batches() const { return batches_; }
  /// What the last run wrote for a sample, [columns].
  std::span<const float> output(int64_t sample) const;

 private:
  PoolBatches() = default;
  std::span<const SparseBatch> batches_;
  std::vector<std::vector<kernels::PoolTask>> tasks_;  // [batches][features]
  Buffer output_;
  int64_t columns_ = 0, stride_ = 0;
};

/// What counting and mapping took, of so many batches.
struct MappingTime {
  double seconds = 0.0;
  int64_t batches = 0;
  double of_batch() const { return seconds / static_cast<double>(batches); }
};

/// Runs whole batches (of an order over more of them, modulo their number): their tasks are made,
/// the work is counted and mapped (as a store's prepare() does), then run. Adds the time of the
/// former to `mapping`, where it is given. All outlive the contender.
Contender fused_contender(const kernels::FusedPool& fused, const PoolBatches& batches,
                          ThreadPool& pool, MappingTime* mapping = nullptr);
/// One batch of it.
void run_fused(const kernels::FusedPool& fused, const PoolBatches& batches, int64_t batch,
               ThreadPool& pool);

/// Batches of each seed, at least: train::read_batches() reads more of a small model's.
struct WorkloadSizes {
  int64_t tune_batches = 8;
  int64_t test_batches = 8;
  std::vector<int64_t> test_samples = {};  // of each test batch; empty: as [tune] says
};

struct KernelWorkload {
  train::ResolvedRun run;
  std::unique_ptr<ThreadPool> pool;           // run.threads
  std::vector<table::EmbeddingTable> tables;  // with initial_weight()s
  std::vector<SparseBatch> tune_batches, test_batches;
  double reading_seconds = 0.0;  // to read a test batch: the mean

  static Result<KernelWorkload> make(const train::ResolvedRun& run, const WorkloadSizes& sizes,
                                     Files& files);
  std::vector<kernels::tune::PooledFeature> features() const;
};

}  // namespace recmill::bench
