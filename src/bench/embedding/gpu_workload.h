// SPDX-License-Identifier: Apache-2.0
// What `bench embedding` works on on a GPU: tables in its memory, batches whose ids were sent
// before, and a gradient, all the same for a rival.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "bench/embedding/fill_pattern.h"
#include "device/gpu/gpu.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/compiled_gpu_pool.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"
#include "table/embedding_table.h"
#include "table/gpu/gpu_updater.h"

namespace recmill::bench {

/// Lookups are not pooled: each gives its row.
struct GpuEmbeddingShape {
  std::string name;
  int64_t tables = 10;
  int64_t rows = 1677721;    // of each table
  int64_t lookups = 104857;  // of each table, a batch
  int64_t dim = 128;
  double zipf = 1.05;
  OptimizerKind optimizer = OptimizerKind::sgd;

  int64_t all_lookups() const { return tables * lookups; }
};

constexpr int64_t kGpuBatches = 4;
constexpr FillPattern kRowPattern{31, 17, 8191, 0, 0x1p-20f};
/// Of the gradient of each lookup: row is its place among those of all tables.
constexpr FillPattern kGradientPattern{7, 13, 1021, 510, 0x1p-16f};

using kernels::codegen::CompileForGpu;

class GpuEmbeddingWorkload {
 public:
  /// The GPU and the pool outlive it. Fails as `compile`, and where memory is short.
  static Result<std::unique_ptr<GpuEmbeddingWorkload>> make(const GpuEmbeddingShape& shape,
                                                            const CompileForGpu& compile, Gpu& gpu,
                                                            ThreadPool& pool);

  const GpuEmbeddingShape& shape() const { return shape_; }
  GpuStream& stream() { return stream_; }

  /// What a batch needs of the CPU: copies in pinned memory, mapping of blocks.
  Status prepare(int64_t batch);
  /// Enqueues the copies of what prepare() staged.
  Status send(int64_t batch);
  /// Enqueues the lookups of a batch; the search for its distinct rows, which goes on beside them;
  /// gradient sums and optimizer for them, once each time that they were found.
  Status lookup(int64_t batch);
  Status find_rows(int64_t batch);
  Status update(int64_t batch);
  /// What is enqueued from now on comes after the search.
  Status wait_for_rows() { return stream_.wait_for(finding_); }

  /// Bytes that lookups, or search and update, must move at least: each address once, so that a row
  /// that is looked up twice is read once, and nothing of what is between the two.
  int64_t lookup_bytes(int64_t batch) const;
  int64_t update_bytes(int64_t batch) const;

  /// Compares what a lookup of batch 0 gives with the rows of a sample of lookups, then updates by
  /// batch 0, the first after make(), and compares a sample of rows with the reference, all bit for
  /// bit. Fails naming the first that differs.
  Status check();
  /// [tables][sampled_rows(t)] rows that check() looks at, and what the reference made of them.
  std::vector<int64_t> sampled_rows(int64_t table) const;
  std::span<const float> expected_rows() const { return expected_rows_; }

  /// Writes ids.bin int64 [batches][tables][lookups], sample.bin int64 [tables][sampled rows] and
  /// shape.json for a rival.
  Status write(Files& files, const std::string& folder) const;

 private:
  struct Batch {
    std::vector<std::vector<int64_t>> ids;  // [tables][lookups]
    std::vector<DistinctRows> distinct;     // [tables], by the CPU: what it must be
    kernels::GpuBags bags;
    kernels::GpuLookups lookups;
    table::GpuUpdates updates;
  };

  GpuEmbeddingWorkload(const GpuEmbeddingShape& shape, Gpu& gpu, ThreadPool& pool, GpuStream stream,
                       GpuStream finding)
      : shape_(shape),
        gpu_(gpu),
        pool_(pool),
        stream_(std::move(stream)),
        finding_(std::move(finding)) {}
  Status allocate();
  Status load(const CompileForGpu& compile);
  Status fill(float* to, int64_t rows, int64_t row_floats, const FillPattern& pattern);
  Status load_finder(std::span<const kernels::codegen::GpuCode> codes, kernels::RowKeys keys);
  void draw_ids();
  void find_distinct(Batch& batch);
  JaggedView bags(const Batch& batch, int64_t table) const;
  int64_t record_bytes() const { return tables_[0].rows().stride; }
  Status check_lookups();
  Status check_update(int64_t table);

  const GpuEmbeddingShape shape_;
  Gpu& gpu_;
  ThreadPool& pool_;
  GpuStream stream_, finding_;
  std::vector<table::EmbeddingTable> tables_;  // without their rows
  std::vector<GpuBuffer> records_;             // [tables]
  GpuBuffer output_, gradient_;                // float [tables][lookups][dim]
  PinnedBuffer staging_;
  std::vector<kernels::codegen::GpuCode> codes_;
  GpuKernel fill_;
  kernels::codegen::CompiledGpuPool fused_pool_;
  std::unique_ptr<kernels::GpuDistinctRowsFinder> finder_;
  std::unique_ptr<table::GpuUpdater> updater_;
  std::vector<int64_t> offsets_;       // [lookups + 1]
  std::vector<int64_t> slice_begins_;  // [slices + 1]
  std::vector<Batch> batches_;
  std::vector<float> expected_rows_;
  int64_t found_ = -1;  // the batch whose rows were found and not updated yet
  int64_t iteration_ = 0;
};

}  // namespace recmill::bench
