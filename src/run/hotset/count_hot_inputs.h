// SPDX-License-Identifier: Apache-2.0
// A run's hot set, and what it and every other cutoff would make hot.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "hotset/block_sample.h"
#include "hotset/hot_curve.h"
#include "hotset/hot_inputs.h"
#include "hotset/hot_problem.h"
#include "hotset_plan/hot_set.h"
#include "run/folder/progress.h"
#include "run/placement/sampled_lookups.h"
#include "run/placement/training_lookups.h"
#include "run/resolved_run.h"
#include "stats/access_counter.h"

namespace recmill::train {

/// What a sample says of the data that was not counted.
struct JudgedSample {
  LookupSample sample;
  hotset::HotInputs inputs;  // of the blocks that judge, by the census's set
  int64_t rows = 0;          // of these
  hotset::HotShares shares;  // of all data, that the set makes hot
};

/// Everything that two passes over the training data say, or over a sample of it (hotset.sample).
/// Not to be moved: parts refer to others.
struct HotCensus {
  hotset::HotProblem problem;
  stats::AccessCounter counts;
  HotSet set;  // as [hotset] says
  hotset::HotCurve curve;
  hotset::HotInputs counted;           // by that set
  std::optional<JudgedSample> judged;  // none: all inputs were counted

  HotCensus(hotset::HotProblem of, stats::AccessCounter counted, HotSet decided,
            const ModelSpec& model)
      : problem(std::move(of)),
        counts(std::move(counted)),
        set(std::move(decided)),
        curve(problem, counts),
        counted(problem, model, counts, set) {}
  HotCensus(const HotCensus&) = delete;

  // Of all training inputs: what was counted exactly, and of others what judges say.
  int64_t inputs() const;
  int64_t lookups() const;
  /// By a cutoff, which is of the inputs that were counted (set.inputs).
  hotset::HotFigures at(int64_t cutoff) const;
  hotset::HotFigures of_set() const;
  /// [tables]: inputs that would be hot were all rows of this table.
  std::vector<int64_t> cold_by_one_table() const;

 private:
  int64_t of_all(int64_t of_counted, int64_t of_judged) const;
};

/// Counts training inputs, decides, or takes the set of hotset.plan, and counts which inputs
/// are hot. `free`: hot_problem(). Where hot and cold inputs are in batches of their own
/// dictionaries are full from the beginning, and number ids in the data's order. The run outlives
/// the result.
Result<std::unique_ptr<HotCensus>> count_hot_inputs(const ResolvedRun& run, int64_t free,
                                                    Files& files, Progress::Style style);

/// The first half of that, of a run in_order_of_data(): fills the dictionaries of `lookups`, counts
/// and decides; inputs are still to be counted.
Result<std::unique_ptr<HotCensus>> decide_in_order_of_data(const ResolvedRun& run, int64_t free,
                                                           TrainingLookups& lookups,
                                                           ThreadPool& pool, Files& files,
                                                           Progress::Style style);

}  // namespace recmill::train
