// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/bench.h"
#include "run/resolved_run.h"

namespace recmill::bench {

/// Forward passes on the GPU of options.device: tuned and fused (RecFlex, section IV) against one
/// schedule for all features as TorchRec and HugeCTR have it, the same schedules found by pointers,
/// features tuned each alone, and static mappings; what the fused kernels take of an H100, by
/// branches and by pointers, and those that training loads beside them, and how long they compile.
/// On the emulator times are the emulator's counts, and how many lanes of a warp are active
/// (RecFlex, table II) is a line of each.
Status run_gpu_case(const std::string& name, const train::ResolvedRun& run,
                    const BenchOptions& options, const BenchSink& sink);

/// Runtime thread mapping against the static ones (RecFlex, figure 13) on batches as [tune] says,
/// on such of 2,560 samples, and where the feature that looks most up has bags 50 times as long.
/// What the emulator counts hardly tells them apart: it has no threads that wait for others.
Status run_gpu_mapping_case(const std::string& name, const train::ResolvedRun& run,
                            const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
