// SPDX-License-Identifier: Apache-2.0
// The distinct rows of all tables of a batch: its lookups are listed in the order of summation
// (slice, feature, sample, position), sorted by their rows' keys (cuda_radix_sort.cuh), which being
// stable keeps that order within a row, and cut where another row begins.
#pragma once

#include "device/kernel.cuh"
#include "kernels/distinct_rows/cuda_radix_sort.cuh"
#include "kernels/distinct_rows/gpu_distinct_arguments.h"

namespace recmill::kernels::gpu {

/// A block for samples of one feature and slice: writes the keys and numbers of their lookups, and
/// by number their sources.
template <class Key>
struct ListLookups {
  struct Shared {
    i64 offsets[kListedSamples + 1];
  };

  RECMILL_DEVICE static void run(const DistinctArguments& of, Shared& shared) {
    const ListedSamples samples = of.samples[blockIdx.x];
    const ListedFeature& feature = of.features[samples.feature];
    const int count = static_cast<int>(samples.end - samples.begin);
    for (int i = static_cast<int>(threadIdx.x); i <= count; i += kDistinctThreads)
      shared.offsets[i] = feature.offsets[samples.begin + i];
    __syncthreads();
    const i64 begin = shared.offsets[0], end = shared.offsets[count];
    for (i64 lookup = begin + threadIdx.x; lookup < end; lookup += kDistinctThreads) {
      const i64 place = samples.place + (lookup - begin);
      const u32 number = feature.first_lookup + static_cast<u32>(lookup);
      const i64 gradient_row =
          feature.pooled != 0 ? samples.begin + sample_of(lookup, count, shared.offsets) : lookup;
      static_cast<Key*>(of.to.keys)[place] =
          static_cast<Key>(feature.first_key + static_cast<u64>(feature.rows[lookup]));
      of.to.numbers[place] = number;
      of.sources[number] = {static_cast<u32>(gradient_row), feature.number,
                            static_cast<u16>(samples.slice)};
    }
  }

 private:
  /// The one among `count` samples whose bag has the lookup.
  RECMILL_DEVICE static int sample_of(i64 lookup, int count,
                                      const i64 (&offsets)[kListedSamples + 1]) {
    int first = 0, last = count;
    while (last - first > 1) {
      const int middle = (first + last) / 2;
      (offsets[middle] <= lookup ? first : last) = middle;
    }
    return first;
  }
};

/// The part of a table's sorted lookups that a block works on.
template <class Key>
struct SortedTile {
  const Key* keys;  // of all lookups
  i64 first;        // of the table
  i64 end;
  i64 tile;  // where this one begins

  RECMILL_DEVICE SortedTile(const DistinctArguments& of, const ListedTable& table, i32 part)
      : keys(static_cast<const Key*>(of.from.keys)),
        first(table.first),
        end(table.first + table.lookups),
        tile(table.first + static_cast<i64>(part) * kSortTile) {}

  /// Where the i-th item of this thread is.
  RECMILL_DEVICE i64 at(int i) const { return tile + item_of_tile(0, i); }
  /// Which of this thread's items begin a row: all keys are on their way at a time.
  RECMILL_DEVICE void find_begins(bool (&begins)[kSortItems]) const {
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      const i64 own = within(at(i));
      const bool is_other = keys[own] != keys[max(own - 1, first)];
      begins[i] = at(i) < end && (own == first || is_other);
    }
  }
  /// A place of the table: this one, or its last.
  RECMILL_DEVICE i64 within(i64 at) const { return min(at, end - 1); }
};

/// A block a tile of a table: `heads` becomes how many rows begin there.
template <class Key>
struct CountRows {
  using Shared = Sums::Shared;

  RECMILL_DEVICE static void run(const DistinctArguments& of, Shared& shared) {
    const TableTile tile = of.tiles[blockIdx.x];
    const SortedTile<Key> sorted(of, of.tables[tile.table], tile.part);
    bool begins[kSortItems];
    sorted.find_begins(begins);
    u32 rows = 0;
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) rows += begins[i] ? 1 : 0;
    const u32 all = Sums::of(rows, shared).all;
    if (threadIdx.x == 0) of.heads[blockIdx.x] = all;
  }
};

/// A warp a table: `heads` becomes how many rows begin in the tiles before.
template <class Key>
struct PlaceRows {
  struct Shared {};

  RECMILL_DEVICE static void run(const DistinctArguments& of, Shared&) {
    const i64 number = static_cast<i64>(blockIdx.x) * kWarpsOfDistinct + warp_of_thread();
    if (number >= of.table_count) return;
    const ListedTable& table = of.tables[number];
    const u32 rows =
        sum_before_each(of.heads + table.first_tile, (table.lookups + kSortTile - 1) / kSortTile);
    if (lane_of_thread() != 0) return;
    of.found.counted[number] = rows;
    of.found.begins[table.first + number + rows] = table.lookups;
  }
};

/// A block a tile of a table: writes its rows, and the sources of its lookups.
template <class Key>
struct ListRows {
  using Shared = Sums::Shared;

  RECMILL_DEVICE static void run(const DistinctArguments& of, Shared& shared) {
    const TableTile tile = of.tiles[blockIdx.x];
    const ListedTable& table = of.tables[tile.table];
    const SortedTile<Key> sorted(of, table, tile.part);
    bool begins[kSortItems];
    sorted.find_begins(begins);
    u32 numbers[kSortItems];
    Source sources[kSortItems];
    find_sources(of, sorted, numbers, sources);
    u32 begun[kSortItems], in_warp = 0;  // by lane: whether a row begins
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      begun[i] = __ballot_sync(kAllLanes, begins[i]);
      in_warp += static_cast<u32>(__popc(begun[i]));
    }
    // With the last lane: what is before it is before its warp.
    const u32 before = Sums::of(lane_of_thread() == 31 ? in_warp : 0, shared).before;
    i64 row = of.heads[blockIdx.x] + before;
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) {
      const i64 at = sorted.at(i);
      if ((begun[i] >> lane_of_thread() & 1) != 0) {
        const i64 own = row + __popc(begun[i] & lanes_below(lane_of_thread()));
        of.found.rows[table.first + own] = static_cast<i64>(sorted.keys[at] - table.first_key);
        of.found.begins[table.first + tile.table + own] = at - table.first;
      }
      if (at < sorted.end) write_source(of, table, at, numbers[i], sources[i]);
      row += __popc(begun[i]);
    }
  }

 private:
  /// Of this thread's items, all on their way at a time.
  RECMILL_DEVICE static void find_sources(const DistinctArguments& of,
                                          const SortedTile<Key>& sorted, u32 (&numbers)[kSortItems],
                                          Source (&sources)[kSortItems]) {
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) numbers[i] = of.from.numbers[sorted.within(sorted.at(i))];
    RECMILL_UNROLL
    for (int i = 0; i < kSortItems; ++i) sources[i] = of.sources[numbers[i]];
  }

  RECMILL_DEVICE static void write_source(const DistinctArguments& of, const ListedTable& table,
                                          i64 at, u32 number, const Source& source) {
    of.found.sources[at] = source;
    if (table.weighted == 0 && table.mean == 0) return;
    const ListedFeature& feature = of.features[table.first_feature + source.feature];
    if (table.weighted != 0)
      of.found.weights[at] =
          feature.weights != nullptr ? feature.weights[number - feature.first_lookup] : 1.0f;
    if (table.mean != 0)
      of.found.counts[at] = feature.mean != 0
                                ? static_cast<float>(feature.offsets[source.gradient_row + 1] -
                                                     feature.offsets[source.gradient_row])
                                : 1.0f;
  }
};

}  // namespace recmill::kernels::gpu
