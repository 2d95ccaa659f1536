// SPDX-License-Identifier: Apache-2.0
// All chains of ops of a batch: a block for samples of one chain, a thread for a value or an id at
// a time, from the raw column to what the chain makes of it.
#pragma once

#include "device/kernel.cuh"
#include "preprocess/ops/cuda_ops.cuh"
#include "preprocess/run/gpu_chain_arguments.h"

namespace recmill::preprocess {

struct RunChains {
  struct Shared {
    i64 offsets[kGpuTileSamples + 1];
  };

  RECMILL_DEVICE static void run(const ChainArguments& of, Shared& shared) {
    const ChainTile tile = of.tiles[blockIdx.x];
    const GpuChain& chain = of.chains[tile.chain];
    const i64 begin = static_cast<i64>(tile.part) * kGpuTileSamples;
    const i64 end = min(begin + kGpuTileSamples, of.samples);
    IdCounts counts;
    if (chain.dense != nullptr) {
      for (i64 s = begin + threadIdx.x; s < end; s += kChainThreads)
        chain.dense[s * chain.dense_stride] = counted_value(chain, s);
    } else if (chain.values != nullptr) {
      for (i64 s = begin + threadIdx.x; s < end; s += kChainThreads)
        write_row(chain, s, run_bucket_op(chain.ops[chain.dense_ops], dense_value(chain, s)),
                  counts);
    } else if (chain.offsets == nullptr) {
      for (i64 s = begin + threadIdx.x; s < end; s += kChainThreads)
        write_id(chain, s, s, 1, 0, counts);
    } else {
      run_bags(chain, begin, static_cast<int>(end - begin), shared, counts);
    }
    add(counts, chain);
  }

 private:
  RECMILL_DEVICE static float dense_value(const GpuChain& chain, i64 sample) {
    float value = chain.values[sample];
    for (int op = 0; op < chain.dense_ops; ++op) value = run_dense_op(chain.ops[op], value);
    return value;
  }

  RECMILL_DEVICE static float counted_value(const GpuChain& chain, i64 sample) {
    if (chain.flattened == nullptr) return dense_value(chain, sample);
    float value = chain.values[sample];
    for (int op = 0; op < chain.dense_ops; ++op) {
      const KeptRange kept = kept_range(chain.ops[op]);
      FlattenedCounts& counts = chain.flattened[op];
      if (value != value) add(-1, counts.values);
      if (value < kept.low) add(1, counts.below);
      if (value > kept.high) add(1, counts.above);
      value = run_dense_op(chain.ops[op], value);
    }
    return value;
  }

  RECMILL_DEVICE static void run_bags(const GpuChain& chain, i64 first, int count, Shared& shared,
                                      IdCounts& counts) {
    for (int i = static_cast<int>(threadIdx.x); i <= count; i += kChainThreads)
      shared.offsets[i] = chain.offsets[first + i];
    __syncthreads();
    const i64 begin = shared.offsets[0], end = shared.offsets[count];
    for (i64 at = begin + threadIdx.x; at < end; at += kChainThreads) {
      const int sample = sample_of(at, count, shared.offsets);
      const i64* in = chain.in_offsets + first + sample;
      write_id(chain, at, in[0] - chain.in_offsets[0], in[1] - in[0], at - shared.offsets[sample],
               counts);
    }
  }

  /// The one among `count` samples whose bag has the id at `at`.
  RECMILL_DEVICE static int sample_of(i64 at, int count,
                                      const i64 (&offsets)[kGpuTileSamples + 1]) {
    int first = 0, last = count;
    while (last - first > 1) {
      const int middle = (first + last) / 2;
      (offsets[middle] <= at ? first : last) = middle;
    }
    return first;
  }

  /// Row and weight `to`: of id i of the bag of `length` ids that begins at ids[from].
  RECMILL_DEVICE static void write_id(const GpuChain& chain, i64 to, i64 from, i64 length, i64 i,
                                      IdCounts& counts) {
    BagId id{0, 1.0f, length};
    if (length > 0) {
      id.id = chain.ids[from + i];
      if (chain.in_weights != nullptr) id.weight = chain.in_weights[from + i];
    }
    const GpuOp* const ops = chain.ops + chain.dense_ops + chain.bucket_ops;
    for (int op = 0; op < chain.bag_ops; ++op) id = run_bag_op(ops[op], id);
    if (chain.weights != nullptr) chain.weights[to] = id.weight;
    write_row(chain, to, id.id, counts);
  }

  RECMILL_DEVICE static void write_row(const GpuChain& chain, i64 to, u64 id, IdCounts& counts) {
    const GpuOp* const ops = chain.ops + chain.dense_ops + chain.bucket_ops + chain.bag_ops;
    for (int op = 0; op < chain.id_ops; ++op) {
      id = run_id_op(ops[op], id, counts);
      if (id == kNoRow) break;
    }
    chain.rows[to] = id;
  }

  RECMILL_DEVICE static void add(const IdCounts& counts, const GpuChain& chain) {
    add(counts.clamped, chain, &IdCounts::clamped);
    add(counts.dropped, chain, &IdCounts::dropped);
    add(counts.refused, chain, &IdCounts::refused);
  }
  RECMILL_DEVICE static void add(i64 count, const GpuChain& chain, int64_t IdCounts::*of) {
    if (count != 0) add(count, chain.counts->*of);
  }
  RECMILL_DEVICE static void add(i64 count, int64_t& to) {
    atomicAdd(reinterpret_cast<u64*>(&to), static_cast<u64>(count));
  }
};

}  // namespace recmill::preprocess
