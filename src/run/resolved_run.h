// SPDX-License-Identifier: Apache-2.0
// A run's options with everything that follows from them and from the data's columns. Pure values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "comm/world.h"
#include "hotset_plan/hot_set.h"
#include "placement_plan/placement_plan.h"
#include "preprocess/dag/resolve.h"
#include "run/options/run_options.h"
#include "schema/column_spec.h"
#include "step/data/batch_schedule.h"
#include "table/placed_tables.h"

namespace recmill::train {

struct HotFolder;  // run/hotset/hot_folder.h

struct ResolvedRun {
  RunOptions options;  // with the lines of its workload written out
  DataSchema schema;
  ModelSpec spec;           // with the tables that the model adds
  std::string tuned_model;  // what kernels of `spec` are tuned for, as it is trained
  preprocess::FeatureGraph graph;
  int slices = 1;
  int ranks = 1;
  int threads = 1;
  // Set by place_tables() where the store is the placed one, for `ranks`:
  std::shared_ptr<const PlacementPlan> plan = nullptr;
  std::shared_ptr<const table::PlacedTables> placed = nullptr;  // the same, ready
  std::string plan_text = {};                                   // checksums of the plan, by line
  // Set by open_hot_folder() where hot and cold inputs are in batches of their own:
  std::shared_ptr<const HotFolder> hot_folder = nullptr;
  bool notes_inputs = false;  // batches of training say where their samples are from
  // Set by choose_hot_rows() where stores go by it, for `ranks`:
  std::shared_ptr<const HotSet> hot_set = nullptr;
  bool keeps_rows = false;  // on a disk they outlive the process: it is training
  // Of an earlier start, where the run is resumed and its rows are at servers or on a disk:
  std::string home_run = {};       // as the servers know it; empty: it is a new one there
  int64_t newest_checkpoint = -1;  // its iteration; -1: there is none

  BatchSchedule schedule(int rank) const;
  /// Ranks that the run can have: as many as it has slices, and one where its store is the plain
  /// one or a GPU computes its layers.
  int most_ranks() const;
  /// Samples that training goes through when the data has `rows` training rows.
  int64_t samples_in_all(int64_t rows) const;
};

/// Checks the options against each other and the columns; errors name the key. `cores` stands in
/// for train.threads = 0.
Result<ResolvedRun> resolve_run(const RunOptions& options, const DataSchema& schema, int cores);

/// The same for this machine and the columns of the data that the options name.
Result<ResolvedRun> resolve_run(const RunOptions& options, Files& files);

/// The same with as many ranks as the world gives, and this process's share of the cores.
Result<ResolvedRun> resolve_run(const RunOptions& options, const World& world, Files& files);

/// Refuses early stopping and the best checkpoint where no evaluation row can be judged by, or none
/// defines the metric.
Status check_judging(const ResolvedRun& run);

/// Processors of this machine: what train.threads = 0 means.
int machine_cores();

}  // namespace recmill::train
