// SPDX-License-Identifier: Apache-2.0
// Finds distinct rows by kernels on the GPU of the tests.
#pragma once

#include <string>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/emulation/emulator.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"

namespace recmill::kernels::codegen {

/// A table of a test, and what is looked up of it. All features of a batch have as many samples.
struct DistinctCase {
  struct Feature {
    SparseFeature bags;
    Pooling pooling = Pooling::sum;
  };
  int64_t rows = 0;
  std::vector<Feature> features = {};
};

/// Tables of many kinds, of `samples` samples: `longest` lookups of a bag and fewer, features of
/// every pooling, with and without weights, rows that are looked up by most samples, tables without
/// lookups or features. Wide: of up to 2^40 rows.
std::vector<DistinctCase> random_distinct_cases(RowKeys keys, int64_t samples, int64_t longest,
                                                uint64_t seed);

/// A table of which one row is looked up twice: last by the first whole warp, and by the only lane
/// after it. Threads in random orders, of some 40 seeds, show who does not wait for whom.
DistinctCase distinct_case_of_two_warps();

/// The compiled kernels of gpu_distinct_sources() that tests link, by DistinctStep, as the emulator
/// runs them.
std::vector<KernelCode> gpu_distinct_sample(RowKeys keys);

class GpuDistinctRun {
 public:
  GpuDistinctRun(std::span<const KernelCode> kernels, RowKeys keys, const emulation::Turns& turns);

  /// Empty: what is found in each table is what the reference gives; else what is wrong. Runs of
  /// one object use the same memory.
  std::string difference(std::span<const DistinctCase> tables, int first_slice, int slices);

 private:
  GpuTableLookups upload(const DistinctCase& table, const LocalSlices& slices);
  template <class T>
  T* upload(const std::vector<T>& values);
  template <class T>
  std::vector<T> download(const GpuBuffer& from, int64_t count);

  Gpu gpu_;
  GpuStream stream_;
  GpuDistinctRowsFinder finder_;
  GpuLookups batch_;
  std::vector<GpuBuffer> uploaded_;
  std::vector<int64_t> begins_;  // of slices
};

}  // namespace recmill::kernels::codegen
