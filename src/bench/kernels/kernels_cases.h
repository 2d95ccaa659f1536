// SPDX-License-Identifier: Apache-2.0
// The cases of `bench kernels`.
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// Against other systems, one schedule for all features, other ways to tune and to map; how near
/// the memory's limit and the tuner's prediction it is, and what counting and mapping cost.
Status run_forward_case(const std::string& name, const train::ResolvedRun& run,
                        const BenchOptions& options, const BenchSink& sink);

/// The pre-built path (ours) against code generated for the tuned schedules, dispatched by branches
/// and by function pointers; what compiling it takes; and what one kernel with all branches, every
/// candidate of every feature, would: the third straw man of RecFlex (section II-C).
Status run_generated_case(const std::string& name, const train::ResolvedRun& run,
                          const BenchOptions& options, const BenchSink& sink);

/// A whole pass of a workload's model, pooled rows and fully connected layers, as a server makes it
/// (RecFlex, figure 10): wall time, and the time of lookups and layers alone, against PyTorch.
Status run_mlp_case(const std::string& name, const train::ResolvedRun& run,
                    const BenchOptions& options, const BenchSink& sink);

/// The three features with the largest share of the time and three at random: every other candidate
/// of the tuned value in place of the chosen one, judged by that feature's own task time there,
/// and the chosen one, the best and the worst again.
Status run_mutation_case(const std::string& name, const train::ResolvedRun& run,
                         const BenchOptions& options, const BenchSink& sink);

/// The three features with the largest share of the time, each with its chosen schedule and three
/// others: all 64 combinations fused, judged by the three features' task time and by the whole.
Status run_oracle_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink);

/// Every candidate of one feature of each class, as the tuner timed it at the value that it chose
/// (RecFlex, figure 3, for features of unlike bags).
Status run_schedules_case(const std::string& name, const train::ResolvedRun& run,
                          const BenchOptions& options, const BenchSink& sink);

/// Forward, backward and row-wise Adagrad of a workload's tables through LocalStore (prepare,
/// lookup, update: all that lies between ids and effect), against FBGEMM's TBE.
Status run_train_case(const std::string& name, const train::ResolvedRun& run,
                      const BenchOptions& options, const BenchSink& sink);

/// Lookups of a batch in which all features are empty: prepare() and lookup() of LocalStore.
Status run_empty_case(const std::string& name, const train::ResolvedRun& run,
                      const BenchOptions& options, const BenchSink& sink);

/// Ten thousand features of dimension 8 without an id, batches of 128 samples. Made from the
/// settings of any workload.
train::RunOptions empty_features(train::RunOptions settings);

/// Tunes the workload twice: for as long as it takes, whose seconds and peak memory are lines, and
/// in 60 s; then both results take turns.
Status run_tuning_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
