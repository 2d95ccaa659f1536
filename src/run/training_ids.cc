// SPDX-License-Identifier: Apache-2.0
#include "run/training_ids.h"

#include "preprocess/run/column_statistics.h"
#include "reader/open_reader.h"

namespace recmill::train {

Result<TrainingIds> open_training_ids(const ResolvedRun& run, ThreadPool& pool, Files& files) {
  const auto seed = static_cast<uint64_t>(run.options.train.seed);
  return open_training_ids(run, run.options.data, seed, pool, files);
}

Result<TrainingIds> open_training_ids(const ResolvedRun& run, const DataOptions& data,
                                      uint64_t seed, ThreadPool& pool, Files& files) {
  TrainingIds ids;
  RECMILL_ASSIGN_OR_RETURN(ids.reader, reader::open_reader(data, Subset::train, seed, pool, files));
  RECMILL_ASSIGN_OR_RETURN(
      ids.preprocessor,
      preprocess::make_preprocessor(preprocess::without_dense(run.graph), run.spec, pool));
  RECMILL_ASSIGN_OR_RETURN(ids.rows, ids.reader->rows());
  if (ids.rows == 0) return Status::Failed("data.train: there is no row in it");
  return ids;
}

}  // namespace recmill::train
