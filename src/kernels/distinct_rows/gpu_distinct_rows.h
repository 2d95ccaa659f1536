// SPDX-License-Identifier: Apache-2.0
// The distinct rows of a batch found on a GPU, from bags that are there: what DistinctRowsFinder
// finds, rows ascending.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device/gpu/gpu.h"
#include "device/gpu/staged_arrays.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/distinct_rows/gpu_distinct_arguments.h"

namespace recmill::kernels {

/// What runs one after the other: the middle three once for each digit of a key. Each has a struct
/// in device code and a kernel of its own (kernels/codegen/gpu/gpu_distinct_source.h).
enum class DistinctStep {
  list_lookups,
  count_digits,
  place_digits,
  sort_by_digit,
  count_rows,
  place_rows,
  list_rows
};
inline constexpr std::array<const char*, 7> kDistinctSteps = {
    "ListLookups", "CountDigits", "PlaceDigits", "SortByDigit",
    "CountRows",   "PlaceRows",   "ListRows"};

/// How a row of any table of a batch is named while lookups are sorted.
enum class RowKeys { narrow, wide };  // in 32 bits or 64
/// The narrowest for tables of so many rows.
RowKeys row_keys(std::span<const int64_t> table_rows);

/// One feature's part of a batch.
struct GpuFeatureBags {
  FeatureBags host;
  LocalSlices slices;  // as many and the same for all features; the features of several batches of
                       // one iteration may follow each other, with samples of their own
  // The same bags on the GPU, where offsets[0] == 0.
  const i64* offsets = nullptr;
  const i64* rows = nullptr;
  const float* weights = nullptr;
};

struct GpuTableLookups {
  int64_t rows = 0;  // of the table
  std::vector<GpuFeatureBags> features = {};

  int64_t lookups() const;
};

/// How large a batch is whose distinct rows are found.
struct GpuLookupsSize {
  int64_t samples = 0;
  int slices = 1;
  int64_t features = 0;
  std::vector<int64_t> lookups = {};    // [tables]
  bool weighted = false, mean = false;  // some feature
};

/// Where a batch's lookups are, on its way to a GPU, and there. Keeps its memory from batch to
/// batch; the batch before must have been run to its end when the next is staged.
class GpuLookups {
 private:
  friend class GpuDistinctRowsFinder;
  StagedArrays arrays_;
  StagedArray<gpu::ListedFeature> features_;
  StagedArray<gpu::ListedSamples> samples_;
  StagedArray<gpu::ListedTable> tables_;
  StagedArray<gpu::TableTile> tiles_;
  int64_t lookups_ = 0;
  int key_bits_ = 0;
  bool weighted_ = false, mean_ = false;
};

class GpuDistinctRowsFinder {
 public:
  /// What a GpuLookups takes of such a batch, at most, and what a finder does.
  static GpuBytes need_of_batch(const GpuLookupsSize& batch);
  static GpuBytes need(const GpuLookupsSize& batch, RowKeys keys);

  /// `kernels`: by DistinctStep, for keys of that kind. The GPU outlives this and all GpuLookups.
  GpuDistinctRowsFinder(Gpu& gpu, std::vector<GpuKernel> kernels, RowKeys keys);

  /// Cuts the lookups of `tables` into parts for blocks, in pinned memory. Any thread, one at a
  /// time for each GpuLookups. A table may have at most 2^16 - 1 features. Fails where memory is
  /// short and on more than 2^31 - 1 lookups.
  Status stage(std::span<const GpuTableLookups> tables, GpuLookups& batch) const;

  /// Enqueues the copy to the GPU.
  static Status send(GpuLookups& batch, GpuStream& stream) { return batch.arrays_.send(stream); }
  /// Enqueues the search among lookups which, with their bags, are on the GPU by then. What was
  /// found before must have been used to its end, by this stream or what it waits for.
  Status run(GpuLookups& batch, GpuStream& stream);

  /// What run() finds, until it is called again.
  struct Found {
    GpuBuffer rows, begins, sources, weights, counts;  // gpu::FoundArrays
    GpuBuffer counted;                                 // [tables] int64_t: distinct rows
    std::vector<gpu::FoundRows> tables;
  };
  const Found& found() const { return found_; }

 private:
  Status reserve_memory(const GpuLookups& batch);
  gpu::DistinctArguments arguments(const GpuLookups& batch) const;
  Status launch(DistinctStep step, int64_t blocks, const gpu::DistinctArguments& arguments,
                GpuStream& stream);
  Status sort(const GpuLookups& batch, gpu::DistinctArguments& arguments, GpuStream& stream);

  Gpu& gpu_;
  const std::vector<GpuKernel> kernels_;  // [DistinctStep]
  const RowKeys keys_;
  GpuBuffer sources_, in_tiles_, digits_, heads_;
  std::array<GpuBuffer, 2> sorted_keys_, sorted_numbers_;  // a pass goes from one to the other
  Found found_;
};

}  // namespace recmill::kernels
