// SPDX-License-Identifier: Apache-2.0
// Schedules that sum bags in another order than the contract's: faster where bags are short and
// rows narrow, and no candidates in deterministic mode. Otherwise as cuda_bags.cuh.
#pragma once

#include "kernels/embedding_pool/cuda_pool.cuh"

namespace recmill::kernels::gpu {

/// As SamplesPerBlock, but the thread groups of a sample take its lookups in turn.
template <class Shape, int kLanes, int kAtOnce, int kThreads, int kSamples>
struct SplitSamplesPerBlock {
  static constexpr int kDepth = kBlockThreads / (kThreads * kSamples);
  static constexpr int kWidth = kThreads * kLanes;
  static_assert(kDepth > 1);
  struct Shared {
    float of[kDepth][kSamples][kWidth];
  };

  RECMILL_DEVICE static void run(const PoolTarget& feature, const PoolBlock& block,
                                 Shared& shared) {
    const Lookups<Shape, kLanes> lookups{feature};
    const int column = static_cast<int>(threadIdx.x) % kThreads * kLanes;
    const int row = static_cast<int>(threadIdx.x) / kThreads % kSamples;
    const int depth = static_cast<int>(threadIdx.x) / (kThreads * kSamples);
    const i64 sample = static_cast<i64>(block.part) * kSamples + row;
    const bool has_sample = sample < feature.samples;
    const i64 begin = has_sample ? feature.offsets[sample] : 0;
    const i64 end = has_sample ? feature.offsets[sample + 1] : 0;
    for (int first = 0; first < Shape::kDim; first += kWidth) {
      const int element = first + column;
      const bool works = has_sample && element < Shape::kDim;
      float sum[kLanes] = {};
      if (works) lookups.template add<kAtOnce>(begin + depth, end, kDepth, element, sum);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) shared.of[depth][row][column + lane] = sum[lane];
      __syncthreads();
      if (works && depth == 0) {
        for (int other = 1; other < kDepth; ++other) {
          RECMILL_UNROLL
          for (int lane = 0; lane < kLanes; ++lane)
            sum[lane] = sum[lane] + shared.of[other][row][column + lane];
        }
        lookups.finish(sample, begin, end, element, sum);
      }
      __syncthreads();
    }
  }
};

/// Reduce by key: threads take kItems lookups each, whichever bags those are of, and a segmented
/// scan over the block adds what belongs to one bag, kColumns columns at a time. A part is
/// kBlockThreads samples.
template <class Shape, int kItems, int kColumns>
struct ReduceByKey {
  static_assert(Shape::kDim % kColumns == 0);
  static constexpr int kWarps = kBlockThreads / 32;
  struct Shared {
    float warp[kWarps][kColumns];  // the sum of what each warp leaves open
    u32 begins[kWarps];            // whether a bag begins in it
    float carried[kColumns];       // what tiles before left open
  };

  RECMILL_DEVICE static void run(const PoolTarget& feature, const PoolBlock& block,
                                 Shared& shared) {
    const i64 first = static_cast<i64>(block.part) * kBlockThreads;
    const i64 last = min(first + kBlockThreads, feature.samples);
    write_empty(feature, first, last);
    const i64 end = feature.offsets[last];
    for (int column = 0; column < Shape::kDim; column += kColumns) {
      if (threadIdx.x < kColumns) shared.carried[threadIdx.x] = 0.0f;
      for (i64 tile = feature.offsets[first]; tile < end; tile += kBlockThreads * kItems)
        reduce_tile(feature, first, last, tile, column, shared);
    }
  }

 private:
  using Row = Lookups<Shape, 1>;

  RECMILL_DEVICE static void write_empty(const PoolTarget& feature, i64 first, i64 last) {
    const i64 sample = first + threadIdx.x;
    if (sample >= last || feature.offsets[sample] != feature.offsets[sample + 1]) return;
    for (int element = 0; element < Shape::kDim; ++element)
      feature.out.data[sample * feature.out.stride + element] = 0.0f;
  }

  /// The sample in [first, last) whose bag has `lookup`.
  RECMILL_DEVICE static i64 sample_of(const PoolTarget& feature, i64 first, i64 last, i64 lookup) {
    while (last - first > 1) {
      const i64 middle = (first + last) / 2;
      (feature.offsets[middle] <= lookup ? first : last) = middle;
    }
    return first;
  }

  RECMILL_DEVICE static void write(const PoolTarget& feature, i64 sample, int column,
                                   float (&sum)[kColumns]) {
    const Row row{feature};
    const i64 begin = feature.offsets[sample], end = feature.offsets[sample + 1];
    RECMILL_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      float total[1] = {sum[c]};
      row.finish(sample, begin, end, column + c, total);
    }
  }

  RECMILL_DEVICE static void reduce_tile(const PoolTarget& feature, i64 first, i64 last, i64 tile,
                                         int column, Shared& shared) {
    const Row row{feature};
    const i64 end = feature.offsets[last];
    const i64 from = tile + static_cast<i64>(threadIdx.x) * kItems;
    const i64 until = min(from + kItems, end);
    i64 sample = from < end ? sample_of(feature, first, last, from) : last;
    // The bag that was open before this thread and ends in it, and what this thread leaves open.
    float head[kColumns] = {}, open[kColumns] = {};
    i64 head_sample = -1;
    u32 begins = 0;
    for (i64 j = from; j < until; ++j) {
      if (j == feature.offsets[sample]) begins = 1;
      RECMILL_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        float value[1];
        row.load(j, column + c, value);
        open[c] = open[c] + value[0];
      }
      if (j + 1 != feature.offsets[sample + 1]) continue;
      if (begins != 0) {
        write(feature, sample, column, open);
      } else {
        head_sample = sample;
        RECMILL_UNROLL
        for (int c = 0; c < kColumns; ++c) head[c] = open[c];
      }
      begins = 1;  // whatever comes now is of another bag
      RECMILL_UNROLL
      for (int c = 0; c < kColumns; ++c) open[c] = 0.0f;
      while (sample < last && feature.offsets[sample + 1] <= j + 1) ++sample;
    }
    float before[kColumns];
    scan(open, begins, before, shared);
    if (head_sample < 0) return;
    RECMILL_UNROLL
    for (int c = 0; c < kColumns; ++c) head[c] = before[c] + head[c];
    write(feature, head_sample, column, head);
  }

  /// before = the sum of what threads before this one left open, down to the last one in which a
  /// bag begins; carried over from tile to tile. All threads of the block call it.
  RECMILL_DEVICE static void scan(float (&open)[kColumns], u32 begins, float (&before)[kColumns],
                                  Shared& shared) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    for (int step = 1; step < 32; step *= 2) {
      const u32 other = __shfl_up_sync(0xffffffffu, begins, static_cast<u32>(step));
      RECMILL_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        const float value = __shfl_up_sync(0xffffffffu, open[c], static_cast<u32>(step));
        if (lane >= step && begins == 0) open[c] = value + open[c];
      }
      if (lane >= step) begins |= other;
    }
    // What the lanes before this one leave open.
    u32 begun = __shfl_up_sync(0xffffffffu, begins, 1u);
    if (lane == 0) begun = 0;
    RECMILL_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      before[c] = __shfl_up_sync(0xffffffffu, open[c], 1u);
      if (lane == 0) before[c] = 0.0f;
    }
    __syncthreads();  // the tile before has been read
    if (lane == 31) {
      shared.begins[warp] = begins;
      RECMILL_UNROLL
      for (int c = 0; c < kColumns; ++c) shared.warp[warp][c] = open[c];
    }
    __syncthreads();
    if (threadIdx.x < kColumns) chain_warps(static_cast<int>(threadIdx.x), shared);
    __syncthreads();
    if (begun == 0) {
      RECMILL_UNROLL
      for (int c = 0; c < kColumns; ++c) before[c] = shared.warp[warp][c] + before[c];
    }
  }

  /// shared.warp: what is open before each warp; shared.carried: after the last.
  RECMILL_DEVICE static void chain_warps(int column, Shared& shared) {
    float open = shared.carried[column];
    for (int warp = 0; warp < kWarps; ++warp) {
      const float own = shared.warp[warp][column];
      shared.warp[warp][column] = open;
      open = shared.begins[warp] != 0 ? own : open + own;
    }
    shared.carried[column] = open;
  }
};

}  // namespace recmill::kernels::gpu
