// SPDX-License-Identifier: Apache-2.0
// The section [placement].
#pragma once

#include <cstdint>
#include <string>

#include "placement/planners.h"
#include "schema/options.h"
#include "store/sharded/sharded_options.h"

namespace recmill::train {

struct PlacementOptions {
  std::string plan;
  placement::PlannerKind planner = placement::PlannerKind::row_wise;
  std::string counts;
  int64_t count_samples = 100'000;
  double sample = 0.0;
  std::string cluster;
  int64_t device_memory_mib = 0;
  double extra_memory = 0.05;
  double access_threshold = 0.001;
  double memory_threshold = 0.001;
  double balance = 0.99;
  bool inference = false;
  bool dedup_fetch = true;
  CopyReduce reduce = CopyReduce::automatic;
  bool one_call = true;
  bool overlap = true;
  bool share_rows = true;
  int64_t replan_every = 0;
  double replan_gain = 0.1;
};
template <typename Visitor>
void describe(Visitor& v, PlacementOptions& o) {
  v("plan", o.plan,
    "file of the placement plan that embedding.store = \"placed\" carries out, for as many devices "
    "as there are ranks; empty: the planner makes one");
  v("planner", o.planner,
    "the planner, which decides where rows are stored: table_wise, row_wise, column_wise, "
    "table_row_wise, "
    "data_parallel, memory_greedy, access_greedy, torchrec_like, oper, hot_cold (copies of hot "
    "rows, "
    "as [hotset] says, at every rank, the others as oper places them) or milp");
  v("counts", o.counts,
    "file of 'recmill stats --counts' that planners go by; empty: they count by themselves");
  v("count_samples", o.count_samples,
    "first samples that are counted where no file of counts is named", between(0, 0x1p40));
  v("sample", o.sample,
    "share of the training rows that is counted instead of the first placement.count_samples, in "
    "whole blocks as hotset.sample draws them; 0: the first",
    between(0, 1));
  v("cluster", o.cluster,
    "file of 'recmill plan measure', of devices and links that planners go by; empty: all alike");
  v("device_memory_mib", o.device_memory_mib,
    "what rows and their state may take of each device; 0: as the cluster's file says, or all",
    between(0, 0x1p36));
  v("extra_memory", o.extra_memory, "oper, milp: memory for copies, as a share of that of all rows",
    between(0, 1024));
  v("access_threshold", o.access_threshold,
    "oper, milp: share of all fetches that a partition has at most", above_up_to(0, 1));
  v("memory_threshold", o.memory_threshold,
    "oper, milp: share of all memory that a partition has at most", above_up_to(0, 1));
  v("balance", o.balance,
    "oper: degree of balance, smallest by largest, for which it halves its thresholds",
    above_up_to(0, 1));
  v("inference", o.inference,
    "plan for lookups alone, so that copies cost no gradients; eval and predict always do");
  v("dedup_fetch", o.dedup_fetch,
    "each distinct row is fetched once a rank and batch, and one sum of its gradients sent back; "
    "false: once for each lookup");
  v("reduce", o.reduce,
    "how gradients of rows with copies are added: sparse (at the row's home, which tells the other "
    "holders), dense (all such rows as one vector), all_gather (at every holder), or auto (what "
    "takes least in each iteration)");
  v("one_call", o.one_call,
    "one round of messages fetches the rows of all tables; false: one a table; where rows are "
    "shared there are none");
  v("overlap", o.overlap,
    "rows that a rank holds are read while others are on their way; false: once those are here");
  v("share_rows", o.share_rows,
    "ranks of one host read each other's rows in place, but for those whose columns are "
    "split; false: messages bring them, as between hosts");
  v("replan_every", o.replan_every,
    "iterations in which lookups are counted, a batch in four, before the cost of the plan in "
    "force "
    "is computed from them; where they have drifted the planner makes a new plan beside training, "
    "and rows move "
    "between two iterations; 0: the plan never changes");
  v("replan_gain", o.replan_gain,
    "how much slower the plan must be predicted to have become, and than a new one, for that",
    above(0));
}

}  // namespace recmill::train
