// SPDX-License-Identifier: Apache-2.0
// From roles and sizes to how a model is trained: decided here for every format.
#pragma once

#include <string>
#include <vector>

#include "reader/guess/column_facts.h"

namespace recmill::reader {

/// What the decision looks at.
struct TrainingInput {
  std::vector<ColumnFacts> dense, ids;  // under the names that the configuration gives them
  int64_t sampled_rows = 0, rows = 0;   // rows: in all, estimated
  bool whole = false;                   // every row is in the sample
  bool has_time = false;
  bool histories = false;  // of a behaviour log: dense and ids are its columns
};

struct TableGuess {
  std::string column;
  int64_t distinct = 0;  // in the sample
  int64_t rows = 0;      // that the whole data set may need
  bool hashed = false;   // too many ids for a dictionary
};

/// A [[features]] entry: an id column whose bags are pooled, or a dense column cut at borders.
struct FeatureGuess {
  std::string name, column, table, pooling;
  std::vector<double> borders;
};

struct TrainingGuess {
  std::vector<TableGuess> tables;
  std::vector<FeatureGuess> features;
  std::vector<std::string> dense_ops;
  double fill_value = 0;
  std::string dense_why;
  std::string model, model_why, deep_input;
  std::vector<int64_t> bottom, top, deep;
  int64_t dim = 16;
  double row_rate = 0, row_accumulator = 0;  // of row-wise Adagrad
  double layer_rate = 0, weight_decay = 0, initial_scale = 0;
  bool by_time = false;
  int64_t batch_size = 0, epochs = 0, steps = 0, evaluate_every = 0, patience = 0;
  std::string metric;  // of the early stop
};

TrainingGuess guess_training(const TrainingInput& input);

}  // namespace recmill::reader
