// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "device/thread_pool.h"
#include "preprocess/run/preprocessor.h"
#include "reader/reader.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// A run's training samples for who looks at no dense value, and so needs no statistics of them.
struct TrainingIds {
  std::unique_ptr<reader::Reader> reader;
  std::unique_ptr<preprocess::Preprocessor> preprocessor;  // of id columns alone
  int64_t rows = 0;                                        // of the data, at least 1
};

/// In the order of training. Opening may read the data once (an index). `pool` and `files` outlive
/// what is opened.
Result<TrainingIds> open_training_ids(const ResolvedRun& run, ThreadPool& pool, Files& files);
/// Of `data` with the run's columns, in the order of `seed`.
Result<TrainingIds> open_training_ids(const ResolvedRun& run, const DataOptions& data,
                                      uint64_t seed, ThreadPool& pool, Files& files);

}  // namespace recmill::train
