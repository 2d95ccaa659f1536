// SPDX-License-Identifier: Apache-2.0
// What training consumes: dense values, and for each feature the rows to look up.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace recmill {

class GpuSparseBatch;

struct DenseBatch {
  int64_t first = 0;  // position of sample 0 in the global order
  int64_t samples = 0;
  int64_t columns = 0;
  std::vector<float> values;          // [samples][columns]
  std::vector<float> labels;          // [samples]
  std::vector<float> sample_weights;  // [samples] or empty: all 1
  std::vector<uint64_t> groups;       // [samples] or empty
};

/// The bags of one feature as a view: rows of its table. Trivially copyable.
struct JaggedView {
  const int64_t* offsets = nullptr;  // [samples + 1], into rows; offsets[0] need not be 0
  const int64_t* rows = nullptr;     // row of the table, in [0, TableSpec::rows); null: of none, or
                                     // they are in a GPU's memory alone
  const float* weights = nullptr;    // beside rows, or null: all 1
  int64_t samples = 0;
  bool one_each = false;  // every bag has exactly one lookup

  int64_t lookups() const {
    return one_each || samples == 0 ? samples : offsets[samples] - offsets[0];
  }
  /// Asks memory for what lookups() reads.
  void fetch_counts() const {
    if (one_each) return;
    __builtin_prefetch(offsets);
    __builtin_prefetch(offsets + samples);
  }
  /// Samples [begin, end) of this view.
  JaggedView slice(int64_t begin, int64_t end) const {
    return {offsets + begin, rows, weights, end - begin, one_each};
  }
};

struct SparseFeature {
  std::vector<int64_t> offsets;  // [samples + 1]
  std::vector<int64_t> rows;     // [offsets.back()]
  std::vector<float> weights;    // [offsets.back()] or empty: all 1
  bool one_each = false;
  bool on_host = true;  // false: rows and weights are in SparseBatch::on_gpu alone

  JaggedView view(int64_t samples) const {
    return {offsets.data(), on_host ? rows.data() : nullptr,
            weights.empty() ? nullptr : weights.data(), samples, one_each};
  }
};

/// Features between one whose counts are read and the one that they are asked for: each has them
/// somewhere else in memory.
constexpr size_t kCountsAhead = 16;

struct SparseBatch {
  int64_t first = 0;
  int64_t samples = 0;
  std::vector<SparseFeature> features;  // in the order of ModelSpec::features
  // Features whose rows were made on a GPU, for those who read them there; null: none was.
  std::shared_ptr<GpuSparseBatch> on_gpu;
};

/// How global batch i is cut into slices (architecture: one order of summation). Slice s of n
/// samples is [s n / S, (s + 1) n / S), a function of n and S alone.
struct SliceCut {
  int64_t samples = 0;  // of the global batch
  int slices = 1;       // S, a power of two

  int64_t begin(int slice) const { return slice * samples / slices; }
  int64_t end(int slice) const { return begin(slice + 1); }

  /// Largest power of two up to 8 that leaves 64 samples a slice: the default of train.slices.
  static int default_slices(int64_t batch) {
    int slices = 8;
    while (slices > 1 && batch / slices < 64) slices /= 2;
    return slices;
  }
};

}  // namespace recmill
