// SPDX-License-Identifier: Apache-2.0
// Schedules that keep the contract's order of summation: each element of a sum is one thread's, or
// partial sums of whole runs are folded in their order.
//
// Each is a struct with the shared memory that a block needs, and run(feature, block, shared),
// which all threads of a block call together. Into how many parts samples are cut, gpu_templates.cc
// says.
#pragma once

#include "kernels/embedding_pool/cuda_pool.cuh"

namespace recmill::kernels::gpu {

struct NoShared {
  u8 none;
};

/// Features whose every bag has one lookup: a block copies the rows of kBlockThreads samples, a
/// thread kUnroll elements of one (RecFlex's one-hot tile).
template <class Shape, int kUnroll>
struct OneEach {
  using Shared = NoShared;
  static constexpr int kThreads = Shape::kDim / kUnroll;  // of a sample
  static_assert(Shape::kDim % kUnroll == 0);

  RECMILL_DEVICE static void run(const PoolTarget& feature, const PoolBlock& block, Shared&) {
    const Lookups<Shape, 1> lookups{feature};
    const i64 first = static_cast<i64>(block.part) * kBlockThreads;
    const i64 samples = min(static_cast<i64>(kBlockThreads), feature.samples - first);
    const i64 base = feature.offsets[0];
    for (i64 i = threadIdx.x; i < samples * kThreads; i += kBlockThreads) {
      const i64 sample = first + i / kThreads;
      const int thread = static_cast<int>(i % kThreads);
      float row[kUnroll][1];
      RECMILL_UNROLL
      for (int k = 0; k < kUnroll; ++k) lookups.load(base + sample, thread + k * kThreads, row[k]);
      RECMILL_UNROLL
      for (int k = 0; k < kUnroll; ++k) {
        float total[1] = {0.0f + row[k][0]};  // a sum begins at +0
        lookups.finish(sample, 0, 1, thread + k * kThreads, total);
      }
    }
  }
};

/// Features that are not pooled: each lookup's row is copied, by kThreads threads, kAtOnce of them
/// on their way at a time.
template <class Shape, int kLanes, int kAtOnce, int kThreads>
struct RowsCopied {
  using Shared = NoShared;
  static constexpr int kLookups = kBlockThreads / kThreads;  // at once

  RECMILL_DEVICE static void run(const PoolTarget& feature, const PoolBlock& block, Shared&) {
    const Lookups<Shape, kLanes> lookups{feature};
    const i64 base = feature.offsets[0], count = feature.offsets[feature.samples] - base;
    const i64 first = static_cast<i64>(block.part) * kBlockThreads;
    const i64 last = min(first + kBlockThreads, count);
    const int own = static_cast<int>(threadIdx.x) % kThreads * kLanes;
    i64 i = first + threadIdx.x / kThreads;
    for (; i + (kAtOnce - 1) * kLookups < last; i += kAtOnce * kLookups)
      for (int element = own; element < Shape::kDim; element += kThreads * kLanes)
        copy<kAtOnce>(lookups, base, i, element);
    for (; i < last; i += kLookups)
      for (int element = own; element < Shape::kDim; element += kThreads * kLanes)
        copy<1>(lookups, base, i, element);
  }

 private:
  /// Lookups i, i + kLookups ... of those from `base` on.
  template <int kCount>
  RECMILL_DEVICE static void copy(const Lookups<Shape, kLanes>& lookups, i64 base, i64 i,
                                  int element) {
    const PoolOutput& out = lookups.feature.out;
    float rows[kCount][kLanes];
    RECMILL_UNROLL
    for (int k = 0; k < kCount; ++k) lookups.load(base + i + k * kLookups, element, rows[k]);
    RECMILL_UNROLL
    for (int k = 0; k < kCount; ++k)
      store_lanes(out.data + (i + k * kLookups) * out.stride + element, rows[k]);
  }
};

/// A sample for kThreads threads, part of a warp up to half a block: each has kLanes neighbouring
/// elements, further ones in turn (RecFlex's warp or sub-warp a sample).
template <class Shape, int kLanes, int kAtOnce, int kThreads>
struct ThreadsPerSample {
  using Shared = NoShared;
  static constexpr int kSamples = kBlockThreads / kThreads;  // of a block

  RECMILL_DEVICE static void run(const PoolTarget& feature, const PoolBlock& block, Shared&) {
    const Lookups<Shape, kLanes> lookups{feature};
    const i64 sample = static_cast<i64>(block.part) * kSamples + threadIdx.x / kThreads;
    if (sample >= feature.samples) return;
    const i64 begin = feature.offsets[sample], end = feature.offsets[sample + 1];
    for (int element = static_cast<int>(threadIdx.x) % kThreads * kLanes; element < Shape::kDim;
         element += kThreads * kLanes) {
      float total[kLanes];
      lookups.template pool<kAtOnce>(begin, end, element, total);
      lookups.finish(sample, begin, end, element, total);
    }
  }
};

/// One block for kSamples samples at a time, kDepth threads deep: thread groups of one sample take
/// runs of its bag in turn, and their sums are folded in the order of runs (RecFlex's one block for
/// several samples).
template <class Shape, int kLanes, int kAtOnce, int kThreads, int kSamples>
struct SamplesPerBlock {
  static constexpr int kDepth = kBlockThreads / (kThreads * kSamples);
  static constexpr int kWidth = kThreads * kLanes;  // elements at a time
  static_assert(kDepth >= 1);
  struct Sums {
    float of[kDepth][kSamples][kWidth];
  };
  using Shared = Sums;

  RECMILL_DEVICE static void run(const PoolTarget& feature, const PoolBlock& block,
                                 Shared& shared) {
    const int thread = static_cast<int>(threadIdx.x) % kThreads;
    const int row = static_cast<int>(threadIdx.x) / kThreads % kSamples;
    const int depth = static_cast<int>(threadIdx.x) / (kThreads * kSamples);
    const i64 sample = static_cast<i64>(block.part) * kSamples + row;
    const bool has_sample = sample < feature.samples && depth < kDepth;
    const i64 begin = has_sample ? feature.offsets[sample] : 0;
    const i64 end = has_sample ? feature.offsets[sample + 1] : 0;
    for (int first = 0; first < Shape::kDim; first += kWidth) {
      const int element = first + thread * kLanes;
      const bool works = has_sample && element < Shape::kDim;
      if constexpr (kDepth == 1) {
        if (works) pool_alone(feature, sample, begin, end, element);
      } else {
        pool_together(feature, {row, depth, sample, begin, end, thread * kLanes, element, works},
                      shared);
      }
    }
  }

 private:
  struct Part {
    int row, depth;
    i64 sample, begin, end;
    int column, element;
    bool works;
  };

  RECMILL_DEVICE static void pool_alone(const PoolTarget& feature, i64 sample, i64 begin, i64 end,
                                        int element) {
    const Lookups<Shape, kLanes> lookups{feature};
    float total[kLanes];
    lookups.template pool<kAtOnce>(begin, end, element, total);
    lookups.finish(sample, begin, end, element, total);
  }

  RECMILL_DEVICE static void pool_together(const PoolTarget& feature, const Part& part,
                                           Shared& shared) {
    const Lookups<Shape, kLanes> lookups{feature};
    float total[kLanes] = {};
    // As many rounds as the longest bag of the block needs: all threads meet at each barrier.
    for (i64 round = part.begin; __syncthreads_or(round < part.end); round += kDepth * kRun) {
      const i64 run = round + part.depth * kRun;
      if (part.works && run < part.end) {
        float sum[kLanes] = {};
        lookups.template add<kAtOnce>(run, min(run + kRun, part.end), 1, part.element, sum);
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane)
          shared.of[part.depth][part.row][part.column + lane] = sum[lane];
      }
      __syncthreads();
      if (part.works && part.depth == 0) {
        for (int depth = 0; depth < kDepth && round + depth * kRun < part.end; ++depth) {
          RECMILL_UNROLL
          for (int lane = 0; lane < kLanes; ++lane)
            total[lane] = total[lane] + shared.of[depth][part.row][part.column + lane];
        }
      }
    }
    if (part.works && part.depth == 0)
      lookups.finish(part.sample, part.begin, part.end, part.element, total);
  }
};

/// Several blocks for one sample with a long bag, kThreads threads for each of its runs; the last
/// block to arrive folds the sums of all runs (RecFlex's multi-block). A part is a sample.
template <class Shape, int kLanes, int kAtOnce, int kThreads>
struct BlocksPerSample {
  static constexpr int kRuns = kBlockThreads / kThreads;  // of a block
  struct Shared {
    u32 arrived;
  };

  RECMILL_DEVICE static void run(const PoolTarget& feature, const PoolBlock& block,
                                 Shared& shared) {
    const i64 sample = block.part;
    const i64 begin = feature.offsets[sample], end = feature.offsets[sample + 1];
    // Bags have at most (lookups before them) / kRun + (bags before them) runs before theirs.
    float* sums = feature.run_sums +
                  ((begin - feature.offsets[0]) / kRun + sample) * static_cast<i64>(Shape::kDim);
    fold_runs(feature, begin, end, block.piece * kRuns, sums);
    __syncthreads();
    if (threadIdx.x == 0) shared.arrived = recmill::arrive(&feature.arrivals[sample]);
    __syncthreads();
    if (shared.arrived + 1 != static_cast<u32>(block.pieces)) return;
    fold_sums(feature, sample, begin, end, sums);
    if (threadIdx.x == 0) feature.arrivals[sample] = 0;
  }

 private:
  RECMILL_DEVICE static void fold_runs(const PoolTarget& feature, i64 begin, i64 end, i64 first,
                                       float* sums) {
    const Lookups<Shape, kLanes> lookups{feature};
    const i64 run = first + threadIdx.x / kThreads;
    const i64 from = begin + run * kRun;
    if (from >= end) return;
    for (int element = static_cast<int>(threadIdx.x) % kThreads * kLanes; element < Shape::kDim;
         element += kThreads * kLanes) {
      float sum[kLanes] = {};
      lookups.template add<kAtOnce>(from, min(from + kRun, end), 1, element, sum);
      store_lanes(sums + run * Shape::kDim + element, sum);
    }
  }

  RECMILL_DEVICE static void fold_sums(const PoolTarget& feature, i64 sample, i64 begin, i64 end,
                                       const float* sums) {
    const Lookups<Shape, 1> lookups{feature};
    for (int element = static_cast<int>(threadIdx.x); element < Shape::kDim;
         element += kBlockThreads) {
      float total[1] = {};
      for (i64 run = 0; begin + run * kRun < end; ++run)
        total[0] = total[0] + __ldcg(sums + run * Shape::kDim + element);
      lookups.finish(sample, begin, end, element, total);
    }
  }
};

}  // namespace recmill::kernels::gpu
