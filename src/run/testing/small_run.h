// SPDX-License-Identifier: Apache-2.0
// A run of some iterations over generated rows, for tests of whole jobs.
#pragma once

#include <string>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "comm/threads.h"
#include "run/options/run_options.h"
#include "score/scoring.h"
#include "train/job.h"

namespace recmill::train {

/// `rows` generated rows and 10 held out, one dense column, a table of ids and one of bags, a DLRM.
inline RunOptions generated_run(int64_t rows) {
  RunOptions options;
  options.name = "small";
  options.data.format = DataFormat::synthetic;
  reader::SyntheticOptions& data = options.data.synthetic;
  data.shape = reader::SyntheticShape::columns;
  data.rows = rows;
  data.eval_rows = 10;
  data.dense = {{.name = "price"}};
  data.ids = {{.name = "shop", .cardinality = 30},
              {.name = "words", .cardinality = 50, .mean_length = 2.0, .max_length = 4}};
  data.planted.crosses = 0;
  options.embedding.dim = 4;
  options.embedding.rows = {100};
  options.model.bottom = {4};
  options.model.top = {1};
  options.train.threads = 1;
  return options;
}

/// 9 iterations in 3 epochs of 70 rows, with dictionaries that grow, a 16-bit table, state by
/// element and for the dense part; a checkpoint after iterations 4 and 8 and at the end.
inline RunOptions small_run() {
  RunOptions options = generated_run(70);
  options.embedding.mapping = preprocess::Mapping::dictionary;
  options.embedding.optimizer.kind = OptimizerKind::adam;
  options.tables.resize(1);
  options.tables[0].name = "shop";
  options.tables[0].precision = RowPrecision::bfloat16;
  options.optimizer.kind = DenseOptimizerKind::adagrad;
  options.train.batch_size = 24;
  options.train.epochs = 3;
  options.train.slices = 8;
  options.train.log_every = 1;
  options.train.window = 50;
  options.train.checkpoint.every = 4;
  options.train.checkpoint.keep = 3;
  return options;
}

inline Result<Json> train(const RunOptions& options, Files& files,
                          ExistingRun existing = ExistingRun::refuse,
                          const ReadOptions& read_options = nullptr) {
  ThreadsWorld world;
  const TrainingRequest request{.existing = existing, .export_plain = ""};
  const JobIdentity identity{.build = "", .config = "# small\n"};
  return run_training(options, request,
                      {.files = files,
                       .world = world,
                       .commit = "",
                       .identity = identity,
                       .read_options = read_options});
}

/// Of its newest checkpoint.
inline Result<Json> score(const RunOptions& options, Files& files,
                          const ReadOptions& read_options = nullptr) {
  ThreadsWorld world;
  return run_scoring(
      options, {},
      {.files = files, .world = world, .commit = "", .identity = {}, .read_options = read_options});
}

inline std::string small_checkpoints() {
  return "runs/small/checkpoints";
}

}  // namespace recmill::train
