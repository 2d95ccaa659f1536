// SPDX-License-Identifier: Apache-2.0
// `bench kernels` on a GPU.
#pragma once

#include <string>

#include "bench/bench.h"

namespace recmill::bench {

/// A workload's name, `_tenth` for a tenth of its features, and `_gpu`, `_gpu_any_order` where
/// schedules that sum in another order than the contract's may win, or `_gpu_static` for static
/// thread mappings.
bool is_gpu_case(const std::string& name);

/// On the GPU of options.device. Where no case is named: D, also with static mappings, and A's
/// tenth. Refuses `figure` and `quick`, which choose among the CPU's cases.
Status run_gpu_kernels_bench(const BenchOptions& options, const BenchSink& sink);

/// Says that the case is none of the CPU's.
Status refuse_gpu_case(const std::string& name);

}  // namespace recmill::bench
