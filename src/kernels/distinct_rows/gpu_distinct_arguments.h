// SPDX-License-Identifier: Apache-2.0
// What the kernels that find distinct rows are given, and what they find. Read by the compilers of
// kernels too.
#pragma once

#include "device/kernel_types.h"

namespace recmill::kernels::gpu {

constexpr int kDistinctThreads = 256;  // of a block
constexpr int kWarpsOfDistinct = kDistinctThreads / 32;
constexpr int kDigitBits = 8;  // of a key, by which a pass sorts
constexpr int kDigits = 1 << kDigitBits;
constexpr int kSortItems = 8;  // of a thread
constexpr int kSortTile = kDistinctThreads * kSortItems;
constexpr int kListedSamples = 256;  // of a block that lists lookups, at most

/// LookupSource, on a GPU.
struct Source {
  u32 gradient_row;
  u16 feature;
  u16 slice;
};

/// One feature of a batch; all pointers are of the device.
struct ListedFeature {
  const i64* offsets;    // [samples + 1], into rows; offsets[0] == 0
  const i64* rows;       // of its table
  const float* weights;  // beside rows, or null
  u64 first_key;         // of its table's row 0
  u32 first_lookup;      // the number of its lookup 0 among all of the batch
  u16 number;            // among the features of its table
  u8 pooled;             // has a gradient for a sample, not for a lookup
  u8 mean;
};

/// Samples of one feature and slice, for one block.
struct ListedSamples {
  i64 begin, end;  // of the feature's batch
  u32 place;       // of their first lookup in the order of summation
  i32 feature;
  i32 slice;  // of the global batch
};

/// One table of a batch. In the order of keys its lookups are at [first, first + lookups) of all.
struct ListedTable {
  u64 first_key;  // of its row 0
  i64 first;
  i64 lookups;
  i64 first_tile;     // of its lookups, cut into tiles
  i32 first_feature;  // of the batch's
  u8 weighted;        // some feature has weights
  u8 mean;            // some feature is a mean
};

/// A tile of a table's sorted lookups, for one block.
struct TableTile {
  i32 table;
  i32 part;
};

/// Keys and numbers of all lookups.
struct KeyedLookups {
  void* keys;    // [lookups] of the kernel's type
  u32* numbers;  // beside: the lookup of the batch, feature by feature
};

/// The distinct rows of all tables: those of table t begin at rows + first and its sources, weights
/// and counts at its `first` too; begins, one more a table, at begins + first + t.
struct FoundArrays {
  i64* rows;
  i64* begins;  // from 0 for each table
  Source* sources;
  float* weights;  // null: no table is weighted
  float* counts;   // null: no table has a mean
  i64* counted;    // [tables]: distinct rows
};

struct DistinctArguments {
  const ListedFeature* features;
  const ListedSamples* samples;  // [blocks that list lookups]
  const ListedTable* tables;
  const TableTile* tiles;  // [blocks that count and list rows]
  Source* sources;         // [lookups] by number
  KeyedLookups from, to;   // of a pass; from: what was sorted last
  i64 lookups;
  i32 shift;        // of the digit that a pass sorts by
  i32 table_count;  // of tables
  u32* in_tiles;  // [kDigits][tiles of all lookups]: items of the digit, then those in tiles before
  u32* digits;    // [kDigits]: items of the digit
  u32* heads;     // [blocks of tiles]: rows that begin there, then those of the table before
  FoundArrays found;
};

/// What was found in one table, as DistinctRows has it, rows ascending; of the device.
struct FoundRows {
  const i64* rows;
  const i64* begins;
  const Source* sources;
  const float* weights;  // null: no feature of the table has any
  const float* counts;   // null: no feature of the table is a mean
  const i64* count;      // how many rows there are
};

}  // namespace recmill::kernels::gpu
