// SPDX-License-Identifier: Apache-2.0
// The cases of `bench placement`; what each shows is told in its own file.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_balance_cases(const BenchOptions& options, const BenchSink& sink);

Status run_counting_cases(const BenchOptions& options, const BenchSink& sink);

Status run_figure10_cases(const BenchOptions& options, const BenchSink& sink);

Status run_heterogeneous_cases(const BenchOptions& options, const BenchSink& sink);

/// Ids a second by table::RowMap::places(), a table a task, on 8 devices with 5 % extra memory;
/// limit: a read of one cache line for each id, of lines as many and as far apart as the map's. The
/// places are those of the plan.
///   mapping_hot   the Terabyte shape, Zipf 1.2: ids of rows that were counted exactly
///   mapping_2.5b  Syn_Large, Zipf 1.05, 2.5 billion rows: ids as they are drawn
Status run_mapping_cases(const BenchOptions& options, const BenchSink& sink);

Status run_optimality_cases(const BenchOptions& options, const BenchSink& sink);

Status run_table2_cases(const BenchOptions& options, const BenchSink& sink);

Status run_table3_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
