// SPDX-License-Identifier: Apache-2.0
// Rows updated by kernels on the GPU of the tests, beside update_tables_reference().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/emulation/emulator.h"
#include "device/gpu/kernel_code.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/row_update/gradient_sums.h"
#include "table/embedding_table.h"
#include "table/optimizers/row_step.h"
#include "table/testing/gpu_update_samples.h"

namespace recmill::table {

/// A table that is updated twice: by the reference and by the kernel.
struct GpuUpdateCase {
  TableSpec spec;
  int slices = 1;
  bool weighted = false, mean = false;
  bool hot = false;  // one row is a block's, else it is listed for a warp
  EmbeddingTable plain, on_gpu;

  /// Of 50 rows; `number` says what is looked up of it: eight that follow each other have all
  /// combinations of the three, 2 n and 2 n + 1 differ in `hot` alone.
  GpuUpdateCase(TableSpec of, int slices, uint64_t number);
  /// Whether all of its rows are blocks', however few their lookups.
  bool is_wide() const { return spec.dim > 1024; }
  bool is_same() const;
};

/// Lookups of a row, more than which have blocks' rows.
constexpr int64_t kLongRowOfTests = 80;

/// What one iteration looks up of a case's table, and gradients.
struct GpuUpdateLookups {
  std::vector<SparseFeature> features;
  std::vector<std::vector<float>> values;
  std::vector<kernels::GradientRows> gradients;
  DistinctRows distinct;

  GpuUpdateLookups(const GpuUpdateCase& of, uint64_t seed);
};

/// One iteration of all cases, whose functions are the sources'. `kernels` [sources].
Status update_on_gpu(std::vector<GpuUpdateCase>& cases, std::span<const GpuUpdateSource> sources,
                     std::span<const KernelCode> kernels, const RowStep& step,
                     const emulation::Turns& turns);

}  // namespace recmill::table
