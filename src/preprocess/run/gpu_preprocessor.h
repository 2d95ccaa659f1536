// SPDX-License-Identifier: Apache-2.0
// Preprocessing whose ops run on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "preprocess/run/preprocessor.h"

namespace recmill::preprocess {

/// Who reads the rows that a GPU makes.
struct RowReaders {
  bool gpu = false;  // SparseBatch::on_gpu has them: the rank's store on the same GPU reads them
  bool host = true;  // they are copied to the host
};

/// Bitwise make_preprocessor(). All chains of a batch are one launch, on a stream of its own. The
/// CPU keeps, on all threads of `pool`, which must outlive it: offsets, which follow from the
/// lengths of bags alone; dictionaries, and every chain that ends in one, since its ids would only
/// come back to be looked up; chains with an op that has no form for GPUs (Op::on_gpu), and all
/// dense ones where one of them has such an op; taking out lookups that were dropped. Counts and
/// dense values come to the host, and rows as `readers` say; in any case those of features whose
/// lookups the host takes out or names, or whose weights it divides. Fails as make_preprocessor()
/// and as `compile`; train() and evaluate() as the GPU does, too.
Result<std::unique_ptr<Preprocessor>> make_gpu_preprocessor(
    const FeatureGraph& graph, const ModelSpec& model, std::shared_ptr<Gpu> gpu, RowReaders readers,
    const kernels::codegen::CompileForGpu& compile, ThreadPool& pool);

/// A batch's size. Lookups are those of its bags, after ops on bags.
struct PreprocessedSize {
  int64_t samples = 0;
  std::span<const int64_t> lookups;  // [model features]
};
/// What it takes of such batches.
struct GpuPreprocessorNeed {
  GpuBytes columns;  // of one batch: raw ones, as if they had as many ids, dense values, counts
  // Of each batch whose rows are read on the GPU, or of one: rows with weights, and offsets, which
  // columns do not have where each sample has one id.
  GpuBytes rows, offsets;
};
/// Fails as make_preprocessor().
Result<GpuPreprocessorNeed> gpu_preprocessor_need(const FeatureGraph& graph, const ModelSpec& model,
                                                  const PreprocessedSize& size, RowReaders readers);
/// [model features] Whether a GPU makes the feature's rows and the host has nothing to finish, so
/// that they may stay there. Fails as make_preprocessor().
Result<std::vector<char>> features_made_on_gpu(const FeatureGraph& graph, const ModelSpec& model);

}  // namespace recmill::preprocess
