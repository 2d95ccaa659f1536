// SPDX-License-Identifier: Apache-2.0
// Sums the gradient of each distinct row, in the one order of summation (gradient_sums.h), and
// applies the row optimizer to it (apply_rows.h). A row is threads_of_row() threads', each of which
// has neighbouring elements; a row with very many lookups is a whole block's, where as many threads
// as others have for a row sum what is of one slice.
#pragma once

#include "base/philox.h"
#include "device/std_for_kernels.cuh"
#include "kernels/embedding_pool/cuda_rows.cuh"
#include "kernels/row_update/gpu_update_arguments.h"
#include "kernels/row_update/rounding.h"
#include "kernels/row_update/with_l2.h"

namespace recmill::kernels::gpu {

/// What is constant of a table, and of the run: its slices are 1 << kLevelsOfTree at most.
template <int kDimension, i64 kBytesOfRecord, i64 kStateAt, int kLevelsOfTree, class WeightType,
          class FormulaType, bool kInTwoMemories = false>
struct UpdateShape {
  static constexpr int kDim = kDimension;
  static constexpr i64 kRecordBytes = kBytesOfRecord;
  static constexpr i64 kElementState = kStateAt;
  static constexpr int kLevels = kLevelsOfTree;
  using Weight = WeightType;
  using Formula = FormulaType;
  static constexpr bool kTwoMemories = kInTwoMemories;
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

/// A row that may be listed, a thread's of a block's.
struct RowToList {
  ListedRow row;
  i64 lookups;  // 0: there is no such row
  i64 long_row;

  /// Of block `number`, if there is one.
  RECMILL_DEVICE static RowToList of(const UpdateArguments& arguments, i64 number) {
    RowToList of = {};
    if (number >= arguments.block_count) return of;
    const UpdateBlock block = arguments.blocks[number];
    const UpdateTable& table = arguments.tables[block.table];
    const i64 row = static_cast<i64>(block.part) * kUpdateThreads + threadIdx.x;
    if (row >= *table.found.count) return of;
    of.row = {block.table, static_cast<i32>(row)};
    of.lookups = table.found.begins[row + 1] - table.found.begins[row];
    of.long_row = table.long_row;
    return of;
  }
  RECMILL_DEVICE void list(const UpdateArguments& arguments) const {
    if (lookups == 0) return;
    const ListedRows listed = arguments.listed;
    UpdateProgress& progress = *arguments.progress;
    if (threadIdx.x == 0) listed.rows[listed.room + atomicAdd(&progress.blocks, 1u)] = row;
    if (lookups > long_row) {
      listed.rows[atomicAdd(&progress.long_rows, 1u)] = row;
    } else if (lookups > kListedRow) {
      listed.rows[listed.room - 1 - atomicAdd(&progress.other_rows, 1u)] = row;
    }
  }
};

/// Lists what is there of each block, and its rows that have many lookups.
RECMILL_DEVICE void list_rows(const UpdateArguments& arguments) {
  constexpr int kBlocks = 4;  // whose rows are on their way at a time
  const i64 step = gridDim.x;
  for (i64 first = blockIdx.x; first < arguments.block_count; first += step * kBlocks) {
    RowToList rows[kBlocks];
    RECMILL_UNROLL
    for (int k = 0; k < kBlocks; ++k) rows[k] = RowToList::of(arguments, first + step * k);
    RECMILL_UNROLL
    for (int k = 0; k < kBlocks; ++k) rows[k].list(arguments);
  }
}

/// The number that comes next of a counter, which stays below 2^31. It is waited for where it is
/// used; an atomicAdd(), of which compilers make one for all lanes of a warp, would be at once.
RECMILL_DEVICE u32 take_number(u32* counter) {
  return atomicInc(counter, 0x7fffffffu);
}

/// The long rows that a block takes, one after the other. When it begins with one it asks for the
/// next: the answer comes meanwhile.
class LongRows {
 public:
  /// `shared` is the block's, for nothing else.
  RECMILL_DEVICE LongRows(const UpdateArguments& arguments, u32& shared)
      : progress_(*arguments.progress), count_(progress_.long_rows), shared_(shared) {
    if (count_ > 0) ask();
  }
  /// For all threads of the block; -1: all are taken.
  RECMILL_DEVICE i64 take() {
    if (threadIdx.x == 0) shared_ = next_;
    __syncthreads();
    const u32 at = shared_;
    if (at >= count_) return -1;
    ask();
    return at;
  }

 private:
  RECMILL_DEVICE void ask() {
    if (threadIdx.x == 0) next_ = take_number(&progress_.long_rows_taken);
  }

  UpdateProgress& progress_;
  const u32 count_;
  u32& shared_;
  u32 next_ = 0;  // of the first thread
};

/// Rows that follow each other, for a warp.
struct WarpWork {
  i32 table;  // -1: everything is taken
  i32 rows;
  i64 first;
};

/// What a warp takes, one after the other: a listed row, or 32 rows of which some may be listed.
/// It asks for the next while it finds out where the rows of one are: the answer comes with them.
class WarpQueue {
 public:
  /// `number` is the warp's, for nothing else.
  RECMILL_DEVICE WarpQueue(const UpdateArguments& arguments, u32& number)
      : arguments_(arguments), number_(number) {
    keep(ask());
  }
  /// For all threads of the warp.
  RECMILL_DEVICE WarpWork take() const {
    return numbered(__shfl_sync(0xffffffffu, is_first() ? number_ : 0, 0));
  }
  /// The number of what is taken next; asked for once whenever something was taken.
  RECMILL_DEVICE u32 ask() const {
    return is_first() ? take_number(&arguments_.progress->warps_work_taken) : 0;
  }
  /// Waits for it, and puts it into shared memory: what updates rows needs all registers.
  RECMILL_DEVICE void keep(u32 asked) {
    if (is_first()) number_ = asked;
  }

 private:
  RECMILL_DEVICE static bool is_first() { return threadIdx.x % 32 == 0; }
  RECMILL_DEVICE WarpWork numbered(u32 number) const {
    constexpr u32 kWarps = kUpdateThreads / 32;
    const u32 listed = arguments_.progress->other_rows;
    if (number < listed) {
      const ListedRow row = arguments_.listed.rows[arguments_.listed.room - 1 - number];
      return {row.table, 1, row.row};
    }
    number -= listed;
    if (number / kWarps >= arguments_.progress->blocks) return {-1, 0, 0};
    const ListedRow first = arguments_.listed.rows[arguments_.listed.room + number / kWarps];
    return {first.table, 32, static_cast<i64>(first.row) + number % kWarps * 32};
  }

  const UpdateArguments& arguments_;
  u32& number_;  // of what is next: the first lane's
};

/// The tree of slice_tree.h over parts that come in the order of their slices: what is complete of
/// it is added up, and of the rest the left half of each level is kept.
template <int kLevels, int kLanes>
struct SliceTree {
  float total[kLanes] = {};
  float left[kLevels > 0 ? kLevels : 1][kLanes] = {};
  u32 has_left = 0;  // by level
  i32 last = -1;     // slice

  RECMILL_DEVICE void add(u32 slice, const float (&part)[kLanes]) {
    if (last >= 0) keep(31 - __clz(static_cast<int>(slice ^ static_cast<u32>(last))));
    last = static_cast<i32>(slice);
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
  static constexpr int kFactors = Formula::kFactors;
  static constexpr int kGroups = 32 / kThreads;  // of threads in a warp
  // Rows of some threads on their way at a time, as far as registers or shared memory go.
  static constexpr int kRowsAtOnce =
      Formula::kRowState ? (Shape::kDim <= 128 ? 4 : 1) : (kStates == 0 && kThreads < 32 ? 4 : 2);
  // Gradients of a row on their way at a time: as many as registers allow.
  static constexpr int kAtOnce = kThreads < 16 ? 4 : 6;
  // A cache line, of which all comes nearer together, in floats; elements at a time that are there.
  static constexpr int kLine = 32;
  static constexpr int kElements = kWidth < Shape::kDim ? kWidth : Shape::kDim;
  using Tree = SliceTree<Shape::kLevels, kLanes>;

  /// Gradients of rows, where the optimizer looks at the whole row first.
  static constexpr bool kWide = too_wide_for_warps(Formula::kRowState, Shape::kDim);
  struct WarpShared {
    float gradient[Formula::kRowState ? kGroups * kRowsAtOnce : 1]
                  [Formula::kRowState && !kWide ? Shape::kDim : 1];
  };
  struct BlockShared {
    float gradient[Formula::kRowState ? Shape::kDim : 1];
    float part[kRows][kWidth];  // by slice
    u32 has_part[kRows];
  };

  /// Updates a warp's rows, of each of which a lane finds out where it is: but for those that
  /// are listed, unless it is one. Warps do not wait for each other.
  RECMILL_DEVICE static void run(const UpdateTable& table, const WarpWork& work, WarpQueue& queue,
                                 WarpShared& shared) {
    const i64 first = work.first;
    const i32 lane = own_number() % 32;
    const i64 end = min(first + work.rows, *table.found.count);
    WarpRow own = WarpRow::of(table, first + lane, end);
    const u32 next = queue.ask();
    own.find_gradient(table);
    queue.keep(next);
    if (work.rows > 1 && own.lookups > min(kListedRow, table.long_row)) own.lookups = 0;
    for (int j = 0; first + j < end; j += kGroups * kRowsAtOnce)
      update_looked_up_once(table, first, j, own, shared);
    for (u32 left = __ballot_sync(0xffffffffu, own.lookups > 1); left != 0;)
      update_others(table, first, own, left, shared);
  }

  /// Updates a long row. All threads of the block come by, and use what is shared for something
  /// else behind a barrier: LongRows::take() has one.
  RECMILL_DEVICE static void run_long(const UpdateTable& table, i64 row, BlockShared& shared) {
    const int number = own_number();
    const int own = number % kThreads * kLanes;
    const bool is_first = number < kThreads;
    const i64 slot = table.slots[row];
    for (int e = 0; e < Shape::kDim; e += kWidth) {
      Tree tree;
      sum_slices(table, row, e, tree, shared);
      if (!is_first || e + own >= Shape::kDim) continue;
      if constexpr (Formula::kRowState) {
        store_lanes(shared.gradient + e + own, tree.total);
      } else {
        Record record;
        record.load(table, slot, e + own);
        record.apply(table, slot, row, e + own, tree.total, Factors());
      }
    }
    if constexpr (Formula::kRowState) apply(table, is_first ? row : -1, slot, shared.gradient);
  }

 private:
  /// The thread's, of its block. A kernel's functions take turns in one loop.
  RECMILL_DEVICE static int own_number() { return opaque(static_cast<int>(threadIdx.x)); }

  RECMILL_DEVICE static u8* record_of(const UpdateTable& table, i64 slot) {
    if constexpr (Shape::kTwoMemories)
      if (slot >= table.near) return table.far_records + (slot - table.near) * Shape::kRecordBytes;
    return table.records + slot * Shape::kRecordBytes;
  }
  RECMILL_DEVICE static float& row_state_of(const UpdateTable& table, i64 slot) {
    if constexpr (Shape::kTwoMemories)
      if (slot >= table.near) return table.far_row_state[slot - table.near];
    return table.row_state[slot];
  }
  /// The number that rounding of a row is keyed by; `row`: its place among those that were found.
  RECMILL_DEVICE static i64 row_of(const UpdateTable& table, i64 slot, i64 row) {
    if constexpr (Shape::kTwoMemories) {
      return slot >= table.near ? slot - table.near : table.row_of_slot[slot];
    } else {
      return table.row_of_slot == nullptr ? table.found.rows[row] : table.row_of_slot[slot];
    }
  }

  /// What the optimizer says of a whole row.
  struct Factors {
    float values[kFactors + 1] = {};
  };

  /// kLanes elements of a row's record.
  struct Record {
    float weights[kLanes] = {};
    float states[kStates + 1][kLanes] = {};

    RECMILL_DEVICE static void prefetch(const UpdateTable& table, i64 slot, int element) {
      const u8* const from = record_of(table, slot);
      recmill::prefetch(from + element * static_cast<int>(sizeof(Stored)));
      RECMILL_UNROLL
      for (int c = 0; c < kStates; ++c)
        recmill::prefetch(from + Shape::kElementState + (c * Shape::kDim + element) * 4);
    }

    RECMILL_DEVICE void load(const UpdateTable& table, i64 slot, int element) {
      const u8* const from = record_of(table, slot);
      load_lanes<Weight>(from, element, weights);
      RECMILL_UNROLL
      for (int c = 0; c < kStates; ++c)
        load_lanes<Float32>(from + Shape::kElementState, c * Shape::kDim + element, states[c]);
    }

    /// `gradient` is without L2, but of an optimizer that looks at the whole of it first.
    RECMILL_DEVICE void apply(const UpdateTable& table, i64 slot, i64 row, int element,
                              const float (&gradient)[kLanes], const Factors& factors) {
      const Formula& formula = *reinterpret_cast<const Formula*>(table.formula);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) {
        float state[kStates + 1] = {};
        RECMILL_UNROLL
        for (int c = 0; c < kStates; ++c) state[c] = states[c][lane];
        const float l2 = Formula::kRowState ? 0.0f : table.l2;
        formula.element(weights[lane], state, with_l2(gradient[lane], weights[lane], l2),
                        factors.values);
        RECMILL_UNROLL
        for (int c = 0; c < kStates; ++c) states[c][lane] = state[c];
      }
      store(table, slot, row, element);
    }

   private:
    RECMILL_DEVICE void store(const UpdateTable& table, i64 slot, i64 row, int element) const {
      u8* const to = record_of(table, slot);
      float* const state = reinterpret_cast<float*>(to + Shape::kElementState) + element;
      RECMILL_UNROLL
      for (int c = 0; c < kStates; ++c) store_lanes(state + c * Shape::kDim, states[c]);
      Stored* const stored = reinterpret_cast<Stored*>(to) + element;
      if constexpr (sizeof(Stored) == 4) {
        store_lanes(stored, weights);
      } else {
        u32 words[kLanes];
        random_words(static_cast<u64>(row_of(table, slot, row)), element, table.rounding_key, words);
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

    /// But for its gradient.
    RECMILL_DEVICE static WarpRow of(const UpdateTable& table, i64 row, i64 rows) {
      WarpRow of = {};
      if (row >= rows) return of;
      of.slot = table.slots[row];
      of.begin = static_cast<i32>(table.found.begins[row]);
      of.lookups = static_cast<i32>(table.found.begins[row + 1]) - of.begin;
      return of;
    }
    RECMILL_DEVICE void find_gradient(const UpdateTable& table) {
      if (lookups == 0) return;
      gradient = reinterpret_cast<u64>(gradient_of(table, table.found.sources[begin]));
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
    const int number = own_number();
    const int group = number % 32 / kThreads;
    const int thread = number % kThreads;
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
                           Factors());
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
    const int number = own_number();
    const int group = number % 32 / kThreads;
    const int thread = number % kThreads;
    u32 lanes = left;
    RECMILL_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      if (g < group) lanes &= lanes - 1;
      left &= left - 1;
    }
    const int lane = __ffs(static_cast<int>(lanes)) - 1;  // -1: none is left for this group
    const WarpRow row = own.from(lane < 0 ? 0 : lane);
    for (int at = 0; lane >= 0 && at < Shape::kDim; at += kWidth) {
      const int e = at + thread * kLanes;
      if (e < Shape::kDim) Record::prefetch(table, row.slot, e);  // while gradients are read
      float gradient[kLanes];
      sum(table, row.begin, row.begin + row.lookups, at, gradient);
      if (e >= Shape::kDim) continue;
      if constexpr (Formula::kRowState) {
        store_lanes(shared.gradient[group] + e, gradient);
      } else {
        Record record;
        record.load(table, row.slot, e);
        record.apply(table, row.slot, first + lane, e, gradient, Factors());
      }
    }
    if constexpr (Formula::kRowState)
      apply(table, lane < 0 ? -1 : first + lane, row.slot, shared.gradient[group]);
  }

  /// Of an optimizer that looks at the whole gradient first, which is in shared memory. All threads
  /// of a warp come by; without a row to update: -1.
  RECMILL_DEVICE static void apply(const UpdateTable& table, i64 row, i64 slot, float* shared) {
    const int first = own_number() % kThreads * kLanes;
    if (table.l2 != 0.0f && row >= 0) add_l2(table, slot, shared);
    __syncwarp();
    const Factors factors = row_factors(table, slot, row >= 0, shared);
    for (int e = first; row >= 0 && e < Shape::kDim; e += kWidth) {
      Record record;
      record.load(table, slot, e);
      float gradient[kLanes];
      read_lanes(shared + e, gradient);
      record.apply(table, slot, row, e, gradient, factors);
    }
    __syncwarp();  // for the next row
  }

  /// To a gradient in shared memory: each thread to the elements that are its own throughout.
  RECMILL_DEVICE static void add_l2(const UpdateTable& table, i64 slot, float* shared) {
    for (int e = own_number() % kThreads * kLanes; e < Shape::kDim; e += kWidth) {
      Record record;
      record.load(table, slot, e);
      float gradient[kLanes];
      read_lanes(shared + e, gradient);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane)
        gradient[lane] = with_l2(gradient[lane], record.weights[lane], table.l2);
      store_lanes(shared + e, gradient);
    }
  }

  /// Lookups of a row that follow each other: each of its threads knows of one.
  struct Held {
    u64 gradient;  // address of its bag's, or its own; 0: there is none
    u32 slice;

    RECMILL_DEVICE static Held of(const UpdateTable& table, i32 at, i32 end) {
      Held held = {};
      if (at >= end) return held;
      const Source source = table.found.sources[at];
      held.gradient = reinterpret_cast<u64>(gradient_of(table, source));
      held.slice = source.slice;
      return held;
    }
    /// Those of another thread of the row.
    RECMILL_DEVICE u64 gradient_of_thread(int thread) const {
      return __shfl_sync(lanes_of_row(), gradient, thread, kThreads);
    }
    RECMILL_DEVICE u32 slice_of_thread(int thread) const {
      return __shfl_sync(lanes_of_row(), slice, thread, kThreads);
    }
  };

  /// In their warp.
  RECMILL_DEVICE static u32 lanes_of_row() {
    if constexpr (kThreads == 32) return 0xffffffffu;
    return ((1u << kThreads % 32) - 1) << (own_number() % 32 / kThreads * kThreads);
  }

  /// A thread's own elements among [first, first + kWidth), or others' where there are none.
  RECMILL_DEVICE static int element_of(int first) {
    const int own = first + own_number() % kThreads * kLanes;
    return own < Shape::kDim ? own : first;
  }

  /// to = kLanes elements, of those from `first` on, of the gradient of a row whose lookups are
  /// [begin, end). All threads of the row come by.
  RECMILL_DEVICE static void sum(const UpdateTable& table, i32 begin, i32 end, int first,
                                 float (&to)[kLanes]) {
    Tree tree;
    float part[kLanes] = {};
    u32 slice = table.found.sources[begin].slice;
    fold(table, begin, end, first, slice, part, tree);
    tree.add(slice, part);
    tree.finish();
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = tree.total[lane];
  }

  /// Goes on with the fold of lookups [begin, end) of a row into the part of `slice`; where another
  /// one begins, `tree` gets that part.
  template <class Parts>
  RECMILL_DEVICE static void fold(const UpdateTable& table, i32 begin, i32 end, int first,
                                  u32& slice, float (&part)[kLanes], Parts& tree) {
    const i32 thread = own_number() % kThreads;
    Held coming = Held::of(table, begin + thread, end);
    for (i32 at = begin; at < end; at += kThreads) {
      const Held held = coming;
      coming = Held::of(table, at + kThreads + thread, end);
      const i32 count = min(kThreads, end - at);
      for (i32 i = 0; i < count; i += kAtOnce) {
        prefetch_some(held, coming, i + kAtOnce, first);
        fold_some(table, held, at, i, min(i + kAtOnce, count), first, slice, part, tree);
      }
    }
  }

  /// The gradients of kAtOnce lookups from the i-th on of those held, which the coming ones follow,
  /// come nearer: at elements [first, first + kWidth). All threads of the row come by.
  RECMILL_DEVICE static void prefetch_some(const Held& held, const Held& coming, i32 i, int first) {
    constexpr int kLines = (kElements + kLine - 1) / kLine;
    constexpr int kLast = (kThreads - 1) / kAtOnce * kAtOnce;
    static_assert(kLines * kAtOnce <= kThreads && kLast + 2 * kAtOnce <= 2 * kThreads);
    const i32 thread = own_number() % kThreads;
    const i32 lookup = i + thread / kLines;
    const u64 of_held = held.gradient_of_thread(lookup % kThreads);
    const u64 of_coming = coming.gradient_of_thread(lookup % kThreads);
    const u64 gradient = lookup < kThreads ? of_held : of_coming;
    const int element = first + thread % kLines * kLine;
    if (thread / kLines < kAtOnce && gradient != 0 && element < Shape::kDim)
      recmill::prefetch(reinterpret_cast<const float*>(gradient) + element);
  }

  /// Those of lookups at, at + 1 ... which are held whose places are [i, end), all on their way at
  /// a time.
  template <class Parts>
  RECMILL_DEVICE static void fold_some(const UpdateTable& table, const Held& held, i32 at, i32 i,
                                       i32 end, int first, u32& slice, float (&part)[kLanes],
                                       Parts& tree) {
    const int element = element_of(first);
    float values[kAtOnce][kLanes] = {};
    RECMILL_UNROLL
    for (int k = 0; k < kAtOnce; ++k)
      if (i + k < end)
        load_lanes<Float32>(reinterpret_cast<const u8*>(held.gradient_of_thread(i + k)), element,
                            values[k]);
    RECMILL_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      if (i + k >= end) continue;
      const u32 next = held.slice_of_thread(i + k);
      const bool is_next = next != slice;
      if (is_next) tree.add(slice, part);
      slice = next;
      scale(table, at + i + k, values[k]);
      RECMILL_UNROLL
      for (int lane = 0; lane < kLanes; ++lane)
        part[lane] = (is_next ? 0.0f : part[lane]) + values[k][lane];
    }
  }

  /// Of lookups of one slice no part is complete before the last.
  struct OnePart {
    RECMILL_DEVICE void add(u32, const float (&)[kLanes]) {}
  };

  /// The first threads' tree becomes the gradient of a row at theirs of the elements from `first`
  /// on. All threads of the block come by.
  RECMILL_DEVICE static void sum_slices(const UpdateTable& table, i64 row, int first, Tree& tree,
                                        BlockShared& shared) {
    const int number = own_number();
    const int group = number / kThreads;
    const int own = number % kThreads * kLanes;
    for (u32 slice = 0; slice < table.slices; slice += kRows) {
      fold_slice(table, row, slice + static_cast<u32>(group), first, own, group, shared);
      __syncthreads();
      for (int i = 0; group == 0 && i < kRows; ++i) {
        if (shared.has_part[i] == 0) continue;
        float part[kLanes];
        RECMILL_UNROLL
        for (int lane = 0; lane < kLanes; ++lane) part[lane] = shared.part[i][own + lane];
        tree.add(slice + static_cast<u32>(i), part);
      }
      __syncthreads();
    }
    tree.finish();
  }

  /// A row's part of one slice, at kLanes elements of those from `first` on.
  RECMILL_DEVICE static void fold_slice(const UpdateTable& table, i64 row, u32 slice, int first,
                                        int own, int group, BlockShared& shared) {
    const i32 end = static_cast<i32>(table.found.begins[row + 1]);
    const i32 from = first_of_slice(table, static_cast<i32>(table.found.begins[row]), end, slice);
    const i32 to = first_of_slice(table, from, end, slice + 1);
    float part[kLanes] = {};
    OnePart one;
    fold(table, from, to, first, slice, part, one);
    RECMILL_UNROLL
    for (int lane = 0; lane < kLanes; ++lane) shared.part[group][own + lane] = part[lane];
    if (own == 0) shared.has_part[group] = from < to ? 1 : 0;
  }

  /// The first of lookups [begin, end) that is of this slice or of one behind it. All threads of a
  /// row come by: each looks at the end of a piece.
  RECMILL_DEVICE static i32 first_of_slice(const UpdateTable& table, i32 begin, i32 end,
                                           u32 slice) {
    const i32 thread = own_number() % kThreads;
    while (begin < end) {
      const i32 piece = (end - begin + kThreads - 1) / kThreads;
      const i32 last = begin + (thread + 1) * piece - 1;
      const bool is_before = last < end && table.found.sources[last].slice < slice;
      begin += __popc(__ballot_sync(lanes_of_row(), is_before ? 1 : 0)) * piece;
      end = min(end, begin + piece - 1);
    }
    return begin;
  }

  /// The gradient of a lookup's bag, or its own.
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
  RECMILL_DEVICE static Factors row_factors(const UpdateTable& table, i64 slot, bool has_row,
                                            const float* gradient) {
    const int thread = own_number() % kThreads;
    const float squares = add_pairwise(has_row ? square_sum(thread, gradient) : 0.0f);
    const Formula& formula = *reinterpret_cast<const Formula*>(table.formula);
    Factors factors;
    if (has_row && thread == 0)
      formula.row(row_state_of(table, slot), squares / static_cast<float>(Shape::kDim), factors.values);
    RECMILL_UNROLL
    for (int f = 0; f < kFactors; ++f)
      factors.values[f] = __shfl_sync(0xffffffffu, factors.values[f], 0, kThreads);
    return factors;
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
