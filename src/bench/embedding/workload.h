// SPDX-License-Identifier: Apache-2.0
// What `bench embedding` works on: tables, batches of bags and a gradient, the same for both sides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "device/buffer.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "table/embedding_table.h"
#include "table/table_update.h"

namespace recmill::bench {

struct EmbeddingShape {
  std::string name;
  int64_t tables = 26;
  int64_t rows = 1000000;  // of each table
  int64_t dim = 16;
  int64_t samples = 2048;
  int64_t bag = 1;     // lookups of each bag
  double zipf = 1.05;  // exponent over permuted rows; 0: uniform
  OptimizerKind optimizer = OptimizerKind::rowwise_adagrad;

  int64_t lookups() const { return tables * samples * bag; }
};

constexpr int64_t kBenchBatches = 16;
constexpr double kBenchLearningRate = 0.05;

/// Row `row` starts as (row mod 8191) 2^-20 + element 2^-12, exact in float32, so that a rival
/// makes the same rows.
class EmbeddingWorkload {
 public:
  static Result<EmbeddingWorkload> make(const EmbeddingShape& shape, ThreadPool& pool);

  const EmbeddingShape& shape() const { return shape_; }
  /// Forward of one batch into output(): [samples][tables * dim].
  void lookup(int64_t batch, ThreadPool& pool);
  /// Distinct rows, forward, backward and row optimizer of one batch.
  void train(int64_t batch, ThreadPool& pool);
  std::span<const float> output() const { return output_.as<float>(); }
  const kernels::RowStorage& rows(int64_t table) const { return tables_[table].rows(); }
  /// Rows that one batch looks up in one table, [samples * bag].
  const int64_t* ids(int64_t batch, int64_t table) const {
    return ids_.data() + (batch * shape_.tables + table) * shape_.samples * shape_.bag;
  }

  /// Writes ids.bin int64 [batches][tables][samples * bag], gradient.bin [samples][tables * dim]
  /// and shape.json for a rival.
  Status write(Files& files, const std::string& folder, int threads,
               const std::string& rival) const;

 private:
  Status make_batches();

  EmbeddingShape shape_;
  std::vector<table::EmbeddingTable> tables_;
  std::vector<int64_t> offsets_;       // [samples + 1], of every feature
  std::vector<int64_t> ids_;           // [batches][tables][samples * bag]
  Buffer gradient_;                    // float [samples][tables * dim]
  Buffer output_;                      // float [samples][tables * dim]
  std::vector<int64_t> slice_begins_;  // [slices + 1]
  std::vector<DistinctRows> distinct_;
  kernels::DistinctRowsFinder finder_;
  int64_t iteration_ = 0;
};

}  // namespace recmill::bench
