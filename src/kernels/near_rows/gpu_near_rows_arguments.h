// SPDX-License-Identifier: Apache-2.0
// From rows to slots, and what the kernels that map them are given. Read by the compilers of
// kernels too; all pointers of arguments are of the device.
#pragma once

#include "device/kernel_types.h"

namespace recmill::kernels::gpu {

constexpr int kNearThreads = 256;        // of a block
constexpr i64 kLookupsOfBlock = 2048;    // that a block maps
constexpr int kMostMappedFeatures = 80;  // of a launch, whose arguments are 4 KiB at most
constexpr int kMostCountedTables = 120;

/// So many rows of a table, of which some are near: a cache line.
struct alignas(64) NearLine {
  static constexpr i64 kWords = 6;
  static constexpr i64 kRows = 64 * kWords;
  static constexpr int kCountBits = 9;
  i64 before;        // near rows before this line's
  u64 before_words;  // the same of this line before each word, kCountBits each
  u64 bits[kWords];  // of each row: whether it is near
};

/// The slot of a row of a table that has `near` near rows. Count gives the ones of 32 bits.
template <class Count>
constexpr i64 slot_of_row(const NearLine& line, i64 near, i64 row, const Count& count) {
  const u32 at = static_cast<u32>(row % NearLine::kRows);
  const u32 word = at / 64;
  const u64 bit = u64{1} << (at % 64);
  if ((line.bits[word] & bit) == 0) return near + row;
  const u64 before = line.bits[word] & (bit - 1);
  const u64 in_line =
      line.before_words >> (word * NearLine::kCountBits) & ((u64{1} << NearLine::kCountBits) - 1);
  return line.before + static_cast<i64>(in_line) + count(static_cast<u32>(before)) +
         count(static_cast<u32>(before >> 32));
}

/// Lookups of one feature.
struct MappedFeature {
  const i64* rows;
  i64* slots;  // [lookups]: of them
  i64 lookups;
  const NearLine* lines;  // of its table
  i64 near;
};

struct MapRowsArguments {
  MappedFeature features[kMostMappedFeatures];
  i64 end_block[kMostMappedFeatures];  // of the launch's blocks: each feature's follow each other
  u64* far;                            // lookups of far rows are added here
};
static_assert(sizeof(MapRowsArguments) <= 4096);

/// The slots that were found in one table, ascending.
struct CountedTable {
  const i64* slots;
  const i64* count;  // how many there are
  i64 near;
  i64* far;  // how many of them are far
};

struct CountFarArguments {
  CountedTable tables[kMostCountedTables];
  i64 count;
};
static_assert(sizeof(CountFarArguments) <= 4096);

}  // namespace recmill::kernels::gpu
