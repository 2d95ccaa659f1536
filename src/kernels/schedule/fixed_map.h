// SPDX-License-Identifier: Apache-2.0
// Thread mappings that do not look at the batch: the baselines of map_tasks(). Pure.
//
// Static (RecFlex, figure 13): each thread's share of the features is decided once, from what they
// are expected to cost; equal costs are the even split of systems like RECom. Sample blocks: a task
// is some samples of all features, as in HugeCTR.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/schedule/task_map.h"

namespace recmill::kernels {

/// A place in the row of all features' samples: before it lie the features up to `feature` and
/// `share` of the samples of that one.
struct FixedCut {
  int64_t feature = 0;
  double share = 0.0;  // in [0, 1)
  bool operator==(const FixedCut&) const = default;
};

/// Cuts features of these expected costs, each >= 0, into parts of equal cost, one a thread: thread
/// t works from cut t to cut t + 1.
std::vector<FixedCut> fixed_cuts(std::span<const double> costs, int threads);  // [threads + 1]

/// One task a thread: what lies between its cuts, whatever it costs in this batch, in pieces of at
/// most `tile` samples.
void map_fixed(std::span<const FeatureWork> features, std::span<const FixedCut> cuts, int64_t tile,
               TaskMap& map);

/// One task for every `block` samples, with one piece a feature; a task with no piece where no
/// feature has such samples is left out. Pieces ascend within a task only.
void map_sample_blocks(std::span<const FeatureWork> features, int64_t block, TaskMap& map);

}  // namespace recmill::kernels
