// SPDX-License-Identifier: Apache-2.0
// Plans for unequal devices and links, of Kaggle's shape: `heterogeneous_CLUSTER_ZIPF_{0,5}pct`.
//   2x4          two nodes of four devices; links between nodes take 4.21 times as long (figure 8)
//   4+2          nodes of four and of two, with the same links
//   slow_link    eight devices, one link of which takes ten times as long
//   half_memory  eight devices, one of which has half the memory
// Communication of a device is the fetch of rows in a batch, the busier of what it receives and
// what it sends; `received` is the former alone, as the paper counts. Access-greedy is beside.
//
// The limit of `largest_communication` is the optimum of a linear program: rows are merged with
// those of about the same accesses a byte into classes, any share of which may be on any device
// and, with extra memory, on several, within the memory that plans have; nothing but
// communication counts. Every plan is such a sharing but for the differences within a class, so
// that no plan's slowest device communicates less but for these.
//
// `figure8_ZIPF`: of the plan for 2x4 with 5 %, what a device fetches from another one, in units of
// the least such cost.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_heterogeneous_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
