// SPDX-License-Identifier: Apache-2.0
// Random work for stores: batches, gradients and operations that are a function of a seed, and a
// driver that carries them out on one rank and records everything that can be seen.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "comm/slice_tree.h"
#include "device/thread_pool.h"
#include "schema/table_spec.h"
#include "store/embedding_store.h"

namespace recmill::store::testing {

/// Every optimizer in every precision, with L2 and without, at dimensions 1, 4, 16, 33 and 64;
/// tables of 1 to 300 rows looked up by one to three features; sums, means, sequences, with weights
/// and without; one frozen table.
ModelSpec scenario_model();

/// The whole global batch: bags of none, one, a few or some hundred lookups, mostly of few rows.
SparseBatch random_batch(const ModelSpec& model, uint64_t seed, int64_t number, int64_t samples);

/// Samples [begin, end) of a batch.
SparseBatch slice(const SparseBatch& batch, int64_t begin, int64_t end);

struct Operation {
  /// snapshot: read_rows whose rows are read while later operations go on, or after them.
  enum class Kind { train, evaluate, settle, read_rows, snapshot, write_rows };
  Kind kind = Kind::train;
  std::vector<int64_t> batches;  // train, evaluate: samples of each; train: all of one update
  double learning_rate_scale = 1.0;
  int table = 0;  // write_rows
};

/// The number of a batch of a scenario's operation, for random_batch().
int64_t number_of_batch(size_t operation, size_t batch);

/// What each rank looks up in one step: [ranks][batches].
using StepBatches = std::vector<std::vector<SparseBatch>>;
/// Adds to the plans of a stream [steps] what a cache does at `rank`. Any thread.
using LookAhead =
    std::function<Status(const ModelSpec& model, int rank, std::span<const StepBatches> steps,
                         std::span<StepPlan> plans)>;

struct Scenario {
  ModelSpec model;
  uint64_t seed = 0;
  int slices = 8;
  std::vector<Operation> operations;
  bool in_stream = true;  // false: evaluations beside a stream, whose batches have no plans
  LookAhead look_ahead = nullptr;  // null: nobody does
};

/// `count` training iterations of assorted sizes: smaller than the slices, one sample, none.
Scenario training_scenario(uint64_t seed, int count);
/// `count` operations of all kinds.
Scenario random_scenario(uint64_t seed, int count);

/// The same with every snapshot read at once.
Scenario without_snapshots(Scenario scenario);

/// What a scenario showed. Outputs: for each lookup, for each feature [samples or lookups][stride],
/// over the whole global batch. Rows: for each read_rows (one ends every scenario) or snapshot and
/// each (table, row) its weights and state columns.
struct Trace {
  std::vector<std::vector<std::vector<float>>> outputs;
  std::vector<std::map<std::pair<int, int64_t>, std::vector<float>>> rows;

  /// Room for what all ranks will show.
  explicit Trace(const Scenario& scenario);
  /// "" when all bits are the same, else the first difference in words.
  std::string difference(const Trace& other) const;

  std::mutex mutex;  // of rows; ranks write disjoint parts of outputs
};

/// Carries out one rank's share, preparing batches with their plans on a thread of its own, and
/// writes this rank's part into `trace`, which ranks share. A row that is handed out twice is an
/// error.
Status carry_out(const Scenario& scenario, EmbeddingStore& store, int rank, int ranks,
                 ThreadPool& pool, Trace& trace);

}  // namespace recmill::store::testing
