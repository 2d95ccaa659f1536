// SPDX-License-Identifier: Apache-2.0
// A run's hot set, and what it and every other cutoff would make hot.
#pragma once

#include <memory>

#include "base/files.h"
#include "base/status.h"
#include "hotset/hot_curve.h"
#include "hotset/hot_inputs.h"
#include "hotset/hot_problem.h"
#include "hotset_plan/hot_set.h"
#include "run/folder/progress.h"
#include "run/placement/training_lookups.h"
#include "run/resolved_run.h"
#include "stats/access_counter.h"

namespace recmill::train {

/// Everything that two passes over the training data say. Not to be moved: parts refer to others.
struct HotCensus {
  hotset::HotProblem problem;
  stats::AccessCounter counts;
  HotSet set;  // as [hotset] says
  hotset::HotCurve curve;
  hotset::HotInputs inputs;  // by that set

  HotCensus(hotset::HotProblem of, stats::AccessCounter counted, HotSet decided,
            const ModelSpec& model)
      : problem(std::move(of)),
        counts(std::move(counted)),
        set(std::move(decided)),
        curve(problem, counts),
        inputs(problem, model, counts, set) {}
  HotCensus(const HotCensus&) = delete;
};

/// Counts all training inputs, decides, or takes the set of hotset.plan, and counts which inputs
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
