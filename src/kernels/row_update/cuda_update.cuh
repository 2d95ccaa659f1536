// SPDX-License-Identifier: Apache-2.0
// Sums the gradient of each distinct row, in the one order of summation (gradient_sums.h), and
// applies the row optimizer to it (apply_rows.h). A row is threads_of_row() threads', each of which
// has neighbouring elements; a row with many lookups is a whole block's, where as many threads as
// others have for a row sum what is of one shard.
#pragma once

#include "base/philox.h"
#include "device/std_for_kernels.cuh"
#include "kernels/embedding_pool/cuda_rows.cuh"
#include "kernels/row_update/gpu_update_arguments.h"
#include "kernels/row_update/rounding.h"

namespace recmill::kernels::gpu {

/// What is constant of a table, and of the run: its shards are 1 << kLevelsOfTree at most.
template <int kDimension, i64 kBytesOfRecord, i64 kStateAt, int kLevelsOfTree, class WeightType,
          class FormulaType>
struct UpdateShape {
  static constexpr int kDim = kDimension;
  static constexpr i64 kRecordBytes = kBytesOfRecord;
  static constexpr i64 kElementState = kStateAt;
  static constexpr int kLevels = kLevelsOfTree;
  using Weight = WeightType;
  using Formula = FormulaType;
};

// Stores a 16-bit weight, rounded by a random word.
template <class Weight>
RECMILL_DEVICE void store_rounded(u16* to, float value, u32 word);
template <>
RECMILL_DEVICE void store_rounded<BFloat16>(u16* to, float value, u32 word) {
  *to = round_stochastically_to_bfloat16(value, word).bits;
}
template <>
RECMILL_DEVICE void store_rounded<Float16>(u16* to, float value, u32 word) {
  *to = round_stochastically_to_float16(value, word).bits;
}

/// Random::bits() of kLanes neighbouring elements of an item, which share one word of four.
template <int kLanes>
RECMILL_DEVICE void random_words(u64 item, int element, u64 key, u32 (&to)[kLanes]) {
  const auto words = philox(
      {{static_cast<u32>(item), static_cast<u32>(item >> 32), static_cast<u32>(element) / 4, 0}},
      key);
  RECMILL_UNROLL
  for (int lane = 0; lane < kLanes; ++lane) {
    const int place = (element + lane) % 4;  // chosen, not indexed: registers have no addresses
    to[lane] = place == 0 ? words[0] : place == 1 ? words[1] : place == 2 ? words[2] : words[3];
  }
}

/// The tree of shard_tree.h over parts that come in the order of their shards: what is complete of
/// it is added up, and of the rest the left half of each level is kept.
template <int kLevels, int kLanes>
struct ShardTree {
  float total[kLanes] = {};
  float left[kLevels > 0 ? kLevels : 1][kLanes] = {};
  u32 has_left = 0;  // by level
  i32 last = -1;     // shard

  RECMILL_DEVICE void add(u32 shard, const float (&part)[kLanes]) {
    if (last >= 0) keep(31 - __clz(static_cast<int>(shard ^ static_cast<u32>(last))));
    last = static_cast<i32>(shard);
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) total[lane] = part[lane];
  }
  RECMILL_DEVICE void finish() { add_left(kLevels); }

 private:
  /// What comes next is in the right half of a subtree of this level, whose left half is complete.
  RECMILL_DEVICE void keep(int level) {
    add_left(level);
    has_left = (has_left >> level | 1u) << level;
    RECMILL_UNROLL
    for (int l = 0; l < kLevels; ++l) {
      if (l != level) continue;
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) left[l][lane] = total[lane];
    }
  }
  RECMILL_DEVICE void add_left(int levels) {
    RECMILL_UNROLL
    for (int l = 0; l < kLevels; ++l) {
      if (l >= levels || (has_left >> l & 1u) == 0) continue;
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) total[lane] = left[l][lane] + total[lane];
    }
  }
};

template <class Shape>
struct UpdateRows {
  using Formula = typename Shape::Formula;
  using Weight = typename Shape::Weight;
  using Stored = typename Weight::Stored;
  static constexpr int kLanes =
      lanes_of_update(Shape::kDim, Shape::kRecordBytes, Shape::kElementState, sizeof(Stored));
  static constexpr int kThreads = threads_of_row(Shape::kDim, kLanes);
  static constexpr int kWidth = kThreads * kLanes;         // elements at a time
  static constexpr int kRows = kUpdateThreads / kThreads;  // that a block has threads for
  static constexpr int kStates = Formula::kElementColumns;
  static constexpr int kGroups = 32 / kThreads;  // of threads in a warp
  // Rows of some threads on their way at a time, as far as registers or shared memory go.
  static constexpr int kRowsAtOnce =
      Formula::kRowState ? (Shape::kDim <= 128 ? 4 : 1) : (kStates == 0 ? 4 : 2);
  static constexpr int kAtOnce = 4;  // gradients of a row on their way at a time
  static constexpr int kAhead = 8;   // of a long row
  static constexpr int kFar = 32;    // lookups that come nearer ahead
  using Tree = ShardTree<Shape::kLevels, kLanes>;

  /// Gradients of rows, where the optimizer looks at the whole row first. Very wide ones are all
  /// taken for long: each warp of a block has no memory for one.
  static constexpr bool kWide = Formula::kRowState && Shape::kDim > 1024;
  struct WarpShared {
    float gradient[Formula::kRowState ? kGroups * kRowsAtOnce : 1]
                  [Formula::kRowState && !kWide ? Shape::kDim : 1];
  };
  struct BlockShared {
    float gradient[Formula::kRowState ? Shape::kDim : 1];
    float part[kRows][kWidth];  // by shard
    u32 has_part[kRows];
  };

  /// Updates a block's rows but the long ones, which it lists. A warp has 32 of them, of each of
  /// which a lane finds out where it stands; warps do not wait for each other.
  RECMILL_DEVICE static void run(const UpdateTable& table, const UpdateBlock& block,
                                 const LongRows& long_rows, WarpShared& shared) {
    const i64 first = static_cast<i64>(block.part) * kUpdateThreads + threadIdx.x / 32 * 32;
    const i64 rows = *table.found.count;
    WarpRow own = WarpRow::of(table, first + threadIdx.x % 32, rows);
    if (own.lookups > (kWide ? 0 : kLongRow)) {
      long_rows.rows[atomicAdd(long_rows.count, 1u)] = {block.table,
                                                        static_cast<i32>(first + threadIdx.x % 32)};
      own.lookups = 0;
    }
    for (int j = 0; j < 32 && first + j < rows; j += kGroups * kRowsAtOnce)
      update_looked_up_once(table, first, j, own, shared);
    for (u32 left = __ballot_sync(0xffffffffu, own.lookups > 1); left != 0;)
      update_others(table, first, own, left, shared);
  }

  /// Updates a long row. All threads of the block come by.
  RECMILL_DEVICE static void run_long(const UpdateTable& table, i64 row, BlockShared& shared) {
    const int own = static_cast<int>(threadIdx.x) % kThreads * kLanes;
    const bool is_first = threadIdx.x < kThreads;
    const i64 slot = table.slots[row];
    for (int e = 0; e < Shape::kDim; e += kWidth) {
      Tree tree;
      sum_shards(table, row, e, tree, shared);
      if (!is_first || e + own >= Shape::kDim) continue;
      if constexpr (Formula::kRowState) {
        store_lanes(shared.gradient + e + own, tree.total);
      } else {
        Record record;
        record.load(table, slot, e + own);
        record.apply(table, slot, row, e + own, tree.total, 0.0f);
      }
    }
    if constexpr (Formula::kRowState) apply(table, is_first ? row : -1, slot, shared.gradient);
    __syncthreads();  // for the next row
  }

 private:
  /// kLanes elements of a row's record.
  struct Record {
    float weights[kLanes] = {};
    float states[kStates + 1][kLanes] = {};

    RECMILL_DEVICE static void prefetch(const UpdateTable& table, i64 slot, int element) {
      const u8* const from = table.records + slot * Shape::kRecordBytes;
      recmill::prefetch(from + element * static_cast<int>(sizeof(Stored)));
      RECMILL_UNROLL
      for (int c = 0; c < kStates; ++c)
        recmill::prefetch(from + Shape::kElementState + (c * Shape::kDim + element) * 4);
    }

    RECMILL_DEVICE void load(const UpdateTable& table, i64 slot, int element) {
      const u8* const from = table.records + slot * Shape::kRecordBytes;
      load_lanes<Weight>(from, element, weights);
      RECMILL_UNROLL
      for (int c = 0; c < kStates; ++c)
        load_lanes<Float32>(from + Shape::kElementState, c * Shape::kDim + element, states[c]);
    }

    RECMILL_DEVICE void apply(const UpdateTable& table, i64 slot, i64 row, int element,
                              const float (&gradient)[kLanes], float factor) {
      const Formula& formula = *reinterpret_cast<const Formula*>(table.formula);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) {
        float state[kStates + 1] = {};
        RECMILL_UNROLL
        for (int c = 0; c < kStates; ++c) state[c] = states[c][lane];
        formula.element(weights[lane], state, gradient[lane], factor);
        RECMILL_UNROLL
        for (int c = 0; c < kStates; ++c) states[c][lane] = state[c];
      }
      store(table, slot, row, element);
    }

   private:
    RECMILL_DEVICE void store(const UpdateTable& table, i64 slot, i64 row, int element) const {
      u8* const to = table.records + slot * Shape::kRecordBytes;
      float* const state = reinterpret_cast<float*>(to + Shape::kElementState) + element;
      RECMILL_UNROLL
      for (int c = 0; c < kStates; ++c) store_lanes(state + c * Shape::kDim, states[c]);
      Stored* const stored = reinterpret_cast<Stored*>(to) + element;
      if constexpr (sizeof(Stored) == 4) {
        store_lanes(stored, weights);
      } else {
        u32 words[kLanes];
        random_words(static_cast<u64>(table.found.rows[row]), element, table.rounding_key, words);
        StoredLanes<Weight, kLanes> rounded;
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane)
          store_rounded<Weight>(&rounded.lane[lane], weights[lane], words[lane]);
        *reinterpret_cast<StoredLanes<Weight, kLanes>*>(stored) = rounded;
      }
    }
  };

  /// What a lane knows of a row.
  struct WarpRow {
    i64 slot;
    u64 gradient;  // address of its first lookup's
    i32 begin, lookups;

    RECMILL_DEVICE static WarpRow of(const UpdateTable& table, i64 row, i64 rows) {
      WarpRow of = {};
      if (row >= rows) return of;
      of.slot = table.slots[row];
      of.begin = static_cast<i32>(table.found.begins[row]);
      of.lookups = static_cast<i32>(table.found.begins[row + 1]) - of.begin;
      of.gradient = reinterpret_cast<u64>(gradient_of(table, table.found.sources[of.begin]));
      return of;
    }
    /// That of another lane.
    RECMILL_DEVICE WarpRow from(int lane) const {
      return {__shfl_sync(0xffffffffu, slot, lane), __shfl_sync(0xffffffffu, gradient, lane),
              __shfl_sync(0xffffffffu, begin, lane), __shfl_sync(0xffffffffu, lookups, lane)};
    }
  };

  /// Updates those of rows j, j + 1 ... of a warp's, which begin at `first`, that have one lookup.
  RECMILL_DEVICE static void update_looked_up_once(const UpdateTable& table, i64 first, int j,
                                                   const WarpRow& own, WarpShared& shared) {
    const int group = static_cast<int>(threadIdx.x) % 32 / kThreads;
    const int thread = static_cast<int>(threadIdx.x) % kThreads;
    WarpRow rows[kRowsAtOnce];
    RECMILL_UNROLL
    for (int k = 0; k < kRowsAtOnce; ++k) rows[k] = own.from(j + k * kGroups + group);
    for (int e = thread * kLanes; e < Shape::kDim; e += kWidth) {
      float gradients[kRowsAtOnce][kLanes] = {};
      Record records[kRowsAtOnce];
      RECMILL_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k) {
        if (rows[k].lookups != 1) continue;
        load_lanes<Float32>(reinterpret_cast<const u8*>(rows[k].gradient), e, gradients[k]);
        if constexpr (Formula::kRowState) {
          Record::prefetch(table, rows[k].slot, e);
        } else {
          records[k].load(table, rows[k].slot, e);
        }
      }
      RECMILL_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k) {
        if (rows[k].lookups != 1) continue;
        scale(table, rows[k].begin, gradients[k]);
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane) gradients[k][lane] = 0.0f + gradients[k][lane];
        if constexpr (Formula::kRowState) {
          store_lanes(shared.gradient[k * kGroups + group] + e, gradients[k]);
        } else {
          records[k].apply(table, rows[k].slot, first + j + k * kGroups + group, e, gradients[k],
                           0.0f);
        }
      }
    }
    if constexpr (Formula::kRowState) {
      RECMILL_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k)
        apply(table, rows[k].lookups == 1 ? first + j + k * kGroups + group : -1, rows[k].slot,
              shared.gradient[k * kGroups + group]);
    }
  }

  /// Updates the first of the rows whose lanes are `left`, each group of threads another one, and
  /// takes them off.
  RECMILL_DEVICE static void update_others(const UpdateTable& table, i64 first, const WarpRow& own,
                                           u32& left, WarpShared& shared) {
    const int group = static_cast<int>(threadIdx.x) % 32 / kThreads;
    const int thread = static_cast<int>(threadIdx.x) % kThreads;
    u32 lanes = left;
    RECMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      if (g < group) lanes &= lanes - 1;
      left &= left - 1;
    }
    const int lane = __ffs(static_cast<int>(lanes)) - 1;  // -1: none is left for this group
    const WarpRow row = own.from(lane < 0 ? 0 : lane);
    for (int e = thread * kLanes; lane >= 0 && e < Shape::kDim; e += kWidth) {
      Record::prefetch(table, row.slot, e);  // while gradients are read
      float gradient[kLanes];
      sum(table, row.begin, row.begin + row.lookups, e, gradient);
      if constexpr (Formula::kRowState) {
        store_lanes(shared.gradient[group] + e, gradient);
      } else {
        Record record;
        record.load(table, row.slot, e);
        record.apply(table, row.slot, first + lane, e, gradient, 0.0f);
      }
    }
    if constexpr (Formula::kRowState)
      apply(table, lane < 0 ? -1 : first + lane, row.slot, shared.gradient[group]);
  }

  /// Of an optimizer that looks at the whole gradient first, which is in shared memory. All threads
  /// of a warp come by; without a row to update: -1.
  RECMILL_DEVICE static void apply(const UpdateTable& table, i64 row, i64 slot,
                                   const float* shared) {
    const int first = static_cast<int>(threadIdx.x) % kThreads * kLanes;
    __syncwarp();
    const float factor = row_factor(table, slot, row >= 0, shared);
    for (int e = first; row >= 0 && e < Shape::kDim; e += kWidth) {
      Record record;
      record.load(table, slot, e);
      float gradient[kLanes];
      read_lanes(shared + e, gradient);
      record.apply(table, slot, row, e, gradient, factor);
    }
    __syncwarp();  // for the next row
  }

  /// to = kLanes elements of the gradient of a row whose lookups are [begin, end).
  RECMILL_DEVICE static void sum(const UpdateTable& table, i32 begin, i32 end, int element,
                                 float (&to)[kLanes]) {
    Tree tree;
    float part[kLanes] = {};
    u32 shard = table.found.sources[begin].shard;
    for (i32 at = begin; at < end; at += kAtOnce) {
      float values[kAtOnce][kLanes] = {};
      u32 shards[kAtOnce] = {};
      RECMILL_UNROLL
      for (int i = 0; i < kAtOnce; ++i)
        if (at + i < end) shards[i] = load(table, at + i, element, values[i]);
      RECMILL_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        if (at + i >= end) continue;
        const bool is_next = shards[i] != shard;
        if (is_next) tree.add(shard, part);
        shard = shards[i];
        scale(table, at + i, values[i]);
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane)
          part[lane] = (is_next ? 0.0f : part[lane]) + values[i][lane];
      }
    }
    tree.add(shard, part);
    tree.finish();
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = tree.total[lane];
  }

  /// The first threads' tree becomes the gradient of a row at theirs of the elements from `first`
  /// on. All threads of the block come by.
  RECMILL_DEVICE static void sum_shards(const UpdateTable& table, i64 row, int first, Tree& tree,
                                        BlockShared& shared) {
    const int group = static_cast<int>(threadIdx.x) / kThreads;
    const int own = static_cast<int>(threadIdx.x) % kThreads * kLanes;
    const int element = first + own < Shape::kDim ? first + own : first;
    for (u32 shard = 0; shard < table.shards; shard += kRows) {
      fold_shard(table, row, shard + static_cast<u32>(group), element, own, group, shared);
      __syncthreads();
      for (int i = 0; group == 0 && i < kRows; ++i) {
        if (shared.has_part[i] == 0) continue;
        float part[kLanes];
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane) part[lane] = shared.part[i][own + lane];
        tree.add(shard + static_cast<u32>(i), part);
      }
      __syncthreads();
    }
    tree.finish();
  }

  /// A row's part of one shard, at kLanes elements.
  RECMILL_DEVICE static void fold_shard(const UpdateTable& table, i64 row, u32 shard, int element,
                                        int own, int group, BlockShared& shared) {
    const i32 end = static_cast<i32>(table.found.begins[row + 1]);
    const i32 from = first_of_shard(table, static_cast<i32>(table.found.begins[row]), end, shard);
    const i32 to = first_of_shard(table, from, end, shard + 1);
    float part[kLanes] = {};
    i32 at = from;
    if (table.found.counts == nullptr && table.found.weights == nullptr) {
      for (; at + kAhead <= to; at += kAhead) {
        for (i32 next = at + kFar; next < min(at + kFar + kAhead, to); ++next)
          recmill::prefetch(gradient_of(table, table.found.sources[next]) + element);
        fold<kAhead, false>(table, at, element, part);
      }
    }
    for (; at + kAtOnce <= to; at += kAtOnce) fold<kAtOnce, true>(table, at, element, part);
    for (; at < to; ++at) fold<1, true>(table, at, element, part);
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) shared.part[group][own + lane] = part[lane];
    if (own == 0) shared.has_part[group] = from < to ? 1 : 0;
  }

  template <int kCount, bool kScaled>
  RECMILL_DEVICE static void fold(const UpdateTable& table, i32 at, int element,
                                  float (&part)[kLanes]) {
    float values[kCount][kLanes];
    RECMILL_UNROLL
    for (int i = 0; i < kCount; ++i) load(table, at + i, element, values[i]);
    RECMILL_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kScaled) scale(table, at + i, values[i]);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) part[lane] = part[lane] + values[i][lane];
    }
  }

  /// The first of lookups [begin, end) that is of this shard or of one behind it.
  RECMILL_DEVICE static i32 first_of_shard(const UpdateTable& table, i32 begin, i32 end,
                                           u32 shard) {
    while (begin < end) {
      const i32 middle = begin + (end - begin) / 2;
      if (table.found.sources[middle].shard < shard) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin;
  }

  /// The gradient of a lookup's bag, or its own; returns its shard.
  RECMILL_DEVICE static u32 load(const UpdateTable& table, i32 at, int element,
                                 float (&to)[kLanes]) {
    const Source source = table.found.sources[at];
    load_lanes<Float32>(reinterpret_cast<const u8*>(gradient_of(table, source)), element, to);
    return source.shard;
  }

  RECMILL_DEVICE static const float* gradient_of(const UpdateTable& table, const Source& source) {
    const Gradients of = table.gradients[source.feature];
    return of.data + static_cast<i64>(source.gradient_row) * of.stride;
  }

  /// Makes it what the lookup adds to its row's.
  RECMILL_DEVICE static void scale(const UpdateTable& table, i32 at, float (&of)[kLanes]) {
    if (table.found.counts != nullptr) {
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) of[lane] = of[lane] / table.found.counts[at];
    }
    if (table.found.weights != nullptr) {
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) of[lane] = table.found.weights[at] * of[lane];
    }
  }

  /// What the optimizer says of the whole row, for all of its threads.
  RECMILL_DEVICE static float row_factor(const UpdateTable& table, i64 slot, bool has_row,
                                         const float* gradient) {
    const int thread = static_cast<int>(threadIdx.x) % kThreads;
    const float squares = add_pairwise(has_row ? square_sum(thread, gradient) : 0.0f);
    const Formula& formula = *reinterpret_cast<const Formula*>(table.formula);
    float factor = 0.0f;
    if (has_row && thread == 0)
      factor = formula.row(table.row_state[slot], squares / static_cast<float>(Shape::kDim));
    return __shfl_sync(0xffffffffu, factor, 0, kThreads);
  }

  // Sum i of the squares has elements i, i + kSquareSums, ...; sums are added pairwise, 8 apart, 4,
  // 2, 1. A thread adds up those of its own, as far as they are apart.
  static constexpr int kAdding = kThreads < kSquareSums ? kThreads : kSquareSums;

  RECMILL_DEVICE static float square_sum(int thread, const float* gradient) {
    constexpr int kOwn = kSquareSums / kAdding;
    float sums[kOwn] = {};
    RECMILL_UNROLL
    for (int i = 0; i < kOwn; ++i)
      for (int e = thread % kAdding + i * kAdding; e < Shape::kDim; e += kSquareSums)
        sums[i] = sums[i] + gradient[e] * gradient[e];
    RECMILL_UNROLL
    for (int half = kOwn / 2; half > 0; half /= 2) {
      RECMILL_UNROLL
      for (int i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
    }
    return sums[0];
  }

  RECMILL_DEVICE static float add_pairwise(float sum) {
    RECMILL_UNROLL
    for (int apart = kAdding / 2; apart > 0; apart /= 2)
      sum = sum + __shfl_down_sync(0xffffffffu, sum, static_cast<u32>(apart), kAdding);
    return sum;
  }
};

}  // namespace recmill::kernels::gpu
