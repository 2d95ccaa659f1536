// SPDX-License-Identifier: Apache-2.0
// A stable radix sort of the keys of lookups, from the lowest digit to the highest. A pass counts
// the digits of each tile, finds where each tile's items of a digit go, and moves them: three
// kernels, because blocks do not wait for each other.
#pragma once

#include "device/kernel.cuh"
#include "kernels/distinct_rows/gpu_distinct_arguments.h"

namespace recmill::kernels::gpu {

constexpr u32 kAllLanes = 0xffffffffu;

RECMILL_DEVICE u32 lane_of_thread() {
  return threadIdx.x % 32;
}
RECMILL_DEVICE u32 warp_of_thread() {
  return threadIdx.x / 32;
}
RECMILL_DEVICE u32 lanes_below(u32 lane) {
  return (1u << lane) - 1;
}

/// The sum of what the lanes down to this one have.
RECMILL_DEVICE u32 sum_through(u32 value) {
  RECMILL_UNROLL
  for (u32 step = 1; step < 32; step *= 2) {
    const u32 below = __shfl_up_sync(kAllLanes, value, step);
    if (lane_of_thread() >= step) value += below;
  }
  return value;
}

/// Makes each number the sum of those before it; returns the sum of all. By one warp.
RECMILL_DEVICE u32 sum_before_each(u32* numbers, i64 count) {
  constexpr int kAtOnce = 8;  // of a lane, on their way at a time
  u32 sum = 0;
  for (i64 first = lane_of_thread(); first - lane_of_thread() < count; first += 32 * kAtOnce) {
    u32 values[kAtOnce];
    RECMILL_UNROLL
    for (int i = 0; i < kAtOnce; ++i)
      values[i] = first + i * 32 < count ? numbers[first + i * 32] : 0;
    RECMILL_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const u32 through = sum_through(values[i]);
      if (first + i * 32 < count) numbers[first + i * 32] = sum + through - values[i];
      sum += __shfl_sync(kAllLanes, through, 31);
    }
  }
  return sum;
}

/// Sums over the threads of a block.
template <int kThreads>
struct BlockSums {
  struct Shared {
    u32 warps[kThreads / 32];
  };
  u32 before = 0;  // of the threads before this one
  u32 all = 0;

  RECMILL_DEVICE static BlockSums of(u32 value, Shared& shared) {
    const u32 through = sum_through(value);
    if (lane_of_thread() == 31) shared.warps[warp_of_thread()] = through;
    __syncthreads();
    BlockSums sums;
    sums.before = through - value;
    for (u32 warp = 0; warp < kThreads / 32; ++warp) {
      if (warp < warp_of_thread()) sums.before += shared.warps[warp];
      sums.all += shared.warps[warp];
    }
    __syncthreads();  // for the next sums
    return sums;
  }
};
using Sums = BlockSums<kDistinctThreads>;

/// The item that the i-th of a thread's is: a warp's follow each other, and so do those of its
/// lanes at a time.
RECMILL_DEVICE i64 item_of_tile(i64 tile, int i) {
  return tile * kSortTile + warp_of_thread() * (32 * kSortItems) + i * 32 + lane_of_thread();
}

template <class Key>
RECMILL_DEVICE u32 digit_of(Key key, i32 shift) {
  return static_cast<u32>(key >> shift) % kDigits;
}

/// Of a warp's lanes those whose item has the same digit as this lane's; none where it has none.
struct LanesAlike {
  u32 lanes;

  /// `at`: of this lane's item; the items of a warp follow each other.
  RECMILL_DEVICE LanesAlike(i64 at, i64 end, u32 digit) : lanes(0) {
    if (at >= end) return;
    const i64 left = end - (at - lane_of_thread());  // with the warp's first
    lanes = __match_any_sync(left < 32 ? lanes_below(static_cast<u32>(left)) : kAllLanes, digit);
  }
  RECMILL_DEVICE u32 count() const { return static_cast<u32>(__popc(lanes)); }
  RECMILL_DEVICE u32 below() const {
    return static_cast<u32>(__popc(lanes & lanes_below(lane_of_thread())));
  }
  RECMILL_DEVICE int first() const { return __ffs(static_cast<int>(lanes)) - 1; }
  RECMILL_DEVICE bool is_first() const { return first() == static_cast<int>(lane_of_thread()); }
};

/// A block a tile: in_tiles becomes how many of its items have each digit.
template <class Key>
struct CountDigits {
  struct Shared {
    u32 counts[kDigits];
  };

  RECMILL_DEVICE static void run(const DistinctArguments& of, Shared& shared) {
    static_assert(kDigits == kDistinctThreads);
    const Key* const keys = static_cast<const Key*>(of.from.keys);
    shared.counts[threadIdx.x] = 0;
    u32 digits[kSortItems];
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      const i64 at = item_of_tile(blockIdx.x, i);
      digits[i] = at < of.lookups ? digit_of(keys[at], of.shift) : 0;
    }
    __syncthreads();
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      const LanesAlike alike(item_of_tile(blockIdx.x, i), of.lookups, digits[i]);
      const u32 items = alike.count();
      // The first lane counts for all: rows may be very unevenly looked up.
      if (alike.is_first()) atomicAdd(&shared.counts[digits[i]], items);
    }
    __syncthreads();
    of.in_tiles[static_cast<i64>(threadIdx.x) * gridDim.x + blockIdx.x] =
        shared.counts[threadIdx.x];
  }
};

/// A warp a digit: in_tiles becomes how many items have the digit in the tiles before, `digits` how
/// many there are of it.
template <class Key>
struct PlaceDigits {
  struct Shared {};

  RECMILL_DEVICE static void run(const DistinctArguments& of, Shared&) {
    const i64 digit = static_cast<i64>(blockIdx.x) * kWarpsOfDistinct + warp_of_thread();
    const i64 tiles = (of.lookups + kSortTile - 1) / kSortTile;
    const u32 items = sum_before_each(of.in_tiles + digit * tiles, tiles);
    if (lane_of_thread() == 0) of.digits[digit] = items;
  }
};

/// A block a tile: moves its items to where they go, by way of shared memory, so that those of a
/// digit, which go to the same place, are written together.
template <class Key>
struct SortByDigit {
  struct Shared {
    u32 counts[kWarpsOfDistinct][kDigits];  // of a warp's items; then the place of its first one
    Key keys[kSortTile];                    // of the tile, sorted
    u32 numbers[kSortTile];
    u32 moves[kDigits];  // from a place in the tile to that among all, of each digit
    Sums::Shared sums;
  };

  RECMILL_DEVICE static void run(const DistinctArguments& of, Shared& shared) {
    for (int warp = 0; warp < kWarpsOfDistinct; ++warp) shared.counts[warp][threadIdx.x] = 0;
    Key keys[kSortItems] = {};
    u32 numbers[kSortItems] = {}, ranks[kSortItems] = {};
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      const i64 at = item_of_tile(blockIdx.x, i);
      if (at >= of.lookups) continue;
      keys[i] = static_cast<const Key*>(of.from.keys)[at];
      numbers[i] = of.from.numbers[at];
    }
    __syncthreads();
    u32(&counts)[kDigits] = shared.counts[warp_of_thread()];
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      const i64 at = item_of_tile(blockIdx.x, i);
      if (at < of.lookups) ranks[i] = rank(at, of.lookups, digit_of(keys[i], of.shift), counts);
      __syncwarp();  // nobody counts the next before all have counted this one
    }
    __syncthreads();
    place_digit(of, shared);
    __syncthreads();
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      if (item_of_tile(blockIdx.x, i) >= of.lookups) continue;
      const u32 place = counts[digit_of(keys[i], of.shift)] + ranks[i];
      shared.keys[place] = keys[i];
      shared.numbers[place] = numbers[i];
    }
    __syncthreads();
    write(of, shared);
  }

 private:
  /// Of the items of a digit in a warp how many come before this one. All lanes come by that have
  /// an item; of those with one digit the first counts, so that no two count at one place.
  RECMILL_DEVICE static u32 rank(i64 at, i64 end, u32 digit, u32 (&counts)[kDigits]) {
    const LanesAlike alike(at, end, digit);
    const u32 items = alike.count();
    u32 before = 0;
    if (alike.is_first()) {
      before = counts[digit];
      counts[digit] = before + items;
    }
    return __shfl_sync(alike.lanes, before, alike.first()) + alike.below();
  }

  /// A thread a digit.
  RECMILL_DEVICE static void place_digit(const DistinctArguments& of, Shared& shared) {
    const u32 digit = threadIdx.x;
    u32 items = 0;
    for (int warp = 0; warp < kWarpsOfDistinct; ++warp) {
      const u32 of_warp = shared.counts[warp][digit];
      shared.counts[warp][digit] = items;
      items += of_warp;
    }
    const u32 in_tile = Sums::of(items, shared.sums).before;
    const u32 among_all = Sums::of(of.digits[digit], shared.sums).before +
                          of.in_tiles[static_cast<i64>(digit) * gridDim.x + blockIdx.x];
    shared.moves[digit] = among_all - in_tile;
    for (int warp = 0; warp < kWarpsOfDistinct; ++warp) shared.counts[warp][digit] += in_tile;
  }

  RECMILL_DEVICE static void write(const DistinctArguments& of, const Shared& shared) {
    const i64 items =
        min(of.lookups - static_cast<i64>(blockIdx.x) * kSortTile, static_cast<i64>(kSortTile));
    for (u32 place = threadIdx.x; place < items; place += kDistinctThreads) {
      const Key key = shared.keys[place];
      const u32 to = shared.moves[digit_of(key, of.shift)] + place;
      static_cast<Key*>(of.to.keys)[to] = key;
      of.to.numbers[to] = shared.numbers[place];
    }
  }
};

}  // namespace recmill::kernels::gpu
