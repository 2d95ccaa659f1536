// SPDX-License-Identifier: Apache-2.0
// Preprocessing whose ops run on a GPU.
#pragma once

#include <memory>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "preprocess/run/preprocessor.h"

namespace recmill::preprocess {

/// Bitwise make_preprocessor(). All chains of a batch are one launch, on a stream of its own. The
/// CPU keeps, on all threads of `pool`, which must outlive it: offsets, which follow from the
/// lengths of bags alone; dictionaries, and every chain that ends in one, since its ids would only
/// come back to be looked up; chains with an op that has no form for GPUs (Op::on_gpu), and all
/// dense ones where one of them has such an op; taking out lookups that were dropped. Fails as that
/// and as `compile`; train() and evaluate() as the GPU does, too.
Result<std::unique_ptr<Preprocessor>> make_gpu_preprocessor(
    const FeatureGraph& graph, const ModelSpec& model, std::shared_ptr<Gpu> gpu,
    const kernels::codegen::CompileForGpu& compile, ThreadPool& pool);

}  // namespace recmill::preprocess
