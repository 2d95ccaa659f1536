// SPDX-License-Identifier: Apache-2.0
// The lookups of a sample of a run's training data (FAE, section III-A-2).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "device/thread_pool.h"
#include "reader/reader.h"
#include "run/folder/progress.h"
#include "run/placement/training_lookups.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Blocks of 1,000 rows of the data's own order, or of a row group at least; which of them,
/// hotset/block_sample.h says.
struct LookupSample {
  struct Block {
    reader::RowRange rows;
    bool judges = false;  // else it counts
  };
  std::vector<Block> blocks;               // ascending
  int64_t drawn_rows = 0;                  // of `blocks`
  int64_t all_blocks = 0, all_rows = 0;    // of the data
  int64_t rest_blocks = 0, rest_rows = 0;  // that do not count
  int64_t counting_rows() const { return all_rows - rest_rows; }
};

class SampledLookups {
 public:
  /// The run and the pool outlive it.
  SampledLookups(const ResolvedRun& run, ThreadPool& pool);

  /// Draws blocks, by train.seed; `key` is that of the share, in (0, 1]. Refused where ids are
  /// numbered as they come, which a part of the data cannot tell.
  Status open(double share, const char* key, Files& files);
  const LookupSample& sample() const { return sample_; }

  /// Which blocks are read.
  enum class Part { counting, all };
  /// Hands the samples that training keeps of them to `visit`, a batch of one block at a time; of
  /// `ranks` ranks each its share of the blocks. Other blocks are not decoded. Once.
  using Visit = std::function<void(const LookupSample::Block&, const SparseBatch&)>;
  Status visit(Part part, int64_t rank, int64_t ranks, Progress& progress, const Visit& visit);
  /// Row groups that were decoded, where the data has any.
  int64_t row_groups() const { return data_.reader->counts().row_groups; }

 private:
  const ResolvedRun& run_;
  ThreadPool& pool_;
  TrainingIds data_;
  LookupSample sample_;
  KeptRows kept_;
  ColumnBatch columns_;
  DenseBatch dense_;
  SparseBatch sparse_;
};

}  // namespace recmill::train
