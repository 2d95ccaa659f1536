// SPDX-License-Identifier: Apache-2.0
// Finds the distinct rows of a batch, once a batch: what the update works through.
//
//   for slice, for feature, for sample of the slice, for position in the bag:
//     row = feature.rows[position]
//     if row is new: append it to rows
//     append (slice, feature, sample or lookup) to row's sources
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "batch/distinct_rows.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "schema/table_spec.h"

namespace recmill::kernels {

/// One feature's part of a rank's batch.
struct FeatureBags {
  JaggedView bags;
  Pooling pooling = Pooling::sum;
};

/// All features of one table, in the order of ModelSpec::features.
struct TableLookups {
  int64_t rows = 0;  // of the table: every row named is in [0, rows)
  std::span<const FeatureBags> features;
};

/// The slices that a rank owns, and where they begin among its samples.
struct LocalSlices {
  int first = 0;                    // number of the first one in the global batch
  std::span<const int64_t> begins;  // [slices + 1], sample of the rank's batch; begins[0] == 0

  int count() const { return static_cast<int>(begins.size()) - 1; }
};

/// Fills out[t] from tables[t]; tables run in parallel. A table may have at most 2^31 - 1 lookups
/// and 2^16 - 1 features. Keeps scratch from batch to batch: use one for each thread that prepares.
class DistinctRowsFinder {
 public:
  DistinctRowsFinder();
  ~DistinctRowsFinder();
  DistinctRowsFinder(DistinctRowsFinder&&) noexcept;
  DistinctRowsFinder& operator=(DistinctRowsFinder&&) noexcept;

  void find(std::span<const TableLookups> tables, const LocalSlices& slices,
            std::span<DistinctRows> out, ThreadPool& pool);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// The plain meaning of the above, with a std::map.
void distinct_rows_reference(const TableLookups& table, const LocalSlices& slices,
                             DistinctRows& out);

}  // namespace recmill::kernels
