// SPDX-License-Identifier: Apache-2.0
// The source of the kernel that runs chains of ops on a GPU (cuda_chains.cuh).
#pragma once

#include <string>

#include "kernels/codegen/gpu/gpu_source.h"

namespace recmill::preprocess {

/// One kernel of kChainThreads threads a block, a block for each ChainTile, whose argument is a
/// ChainArguments. The same for every graph. Pure.
kernels::codegen::GpuSource gpu_preprocess_source(const std::string& made_by);

}  // namespace recmill::preprocess
