// SPDX-License-Identifier: Apache-2.0
// Runtime thread mapping against the static ones where batches are not like those of tuning, and
// the planted case of separate tuning.
#pragma once

#include <string>

#include "bench/kernels/sides.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// Adds static_mean and static_max: the kernels of `fused` in tiles of `tile`, threads bound by
/// what features cost in the batches that were tuned on.
void add_static(const kernels::FusedPool& fused, int64_t tile, const PoolBatches& tuned_on,
                const PoolBatches& batches, ThreadPool& pool, size_t ours, Sides& sides);

/// Batches as [tune] says.
Status run_static_case(const std::string& name, const train::ResolvedRun& run,
                       const BenchOptions& options, const BenchSink& sink);
/// Batches of 2,560 samples.
Status run_large_batch_case(const std::string& name, const train::ResolvedRun& run,
                            const BenchOptions& options, const BenchSink& sink);
/// The feature that costs most is 50 times as long as when it was tuned.
Status run_heavy_feature_case(const std::string& name, const train::ResolvedRun& run,
                              const BenchOptions& options, const BenchSink& sink);
/// Tuned against separate_combine alone.
Status run_separate_case(const std::string& name, const train::ResolvedRun& run,
                         const BenchOptions& options, const BenchSink& sink);

/// Sixteen features, each of another class, so that no single choice of a tuning decides; each on a
/// table of 20 MiB. One id a sample, batches of 16,384: what a feature reads and writes fits a
/// last-level cache alone, where outputs are best written to the cache; beside the others it does
/// not, and they are best written past it. Made from the settings of any workload.
train::RunOptions planted_llc(train::RunOptions settings);
/// The same with bags, of which all read far more than they write.
train::RunOptions planted_llc_bags(train::RunOptions settings);

}  // namespace recmill::bench
