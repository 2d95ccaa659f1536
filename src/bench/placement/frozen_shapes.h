// SPDX-License-Identifier: Apache-2.0
// The five data sets of OPER (ATC 2024) as shapes of tables, and accesses to them drawn by a law,
// frozen: what every case of `bench placement` is built on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "reader/synthetic/zipf_law.h"
#include "schema/access_counts.h"
#include "schema/table_spec.h"

namespace recmill::bench {

struct FrozenShape {
  std::string name;
  int64_t dim = 0;
  std::vector<int64_t> rows;  // of each table; a sample looks one row of each up

  int64_t total_rows() const;
  /// Tables "t0", "t1", ... in float32, a feature each.
  ModelSpec spec() const;
  /// AccessCounts::model of its counts: name and rows. The law is not part of it.
  std::string model() const;
};

/// avazu, kaggle, terabyte, syn_small, syn_large.
const std::vector<FrozenShape>& frozen_shapes();
/// A bad request, which lists them, where there is none of that name.
Result<FrozenShape> frozen_shape(const std::string& name);

/// A fixed order of the rows of a table, as if by chance: rank to row. Its own inverse is not
/// known; every row is that of one rank.
class RowPermutation {
 public:
  RowPermutation(int64_t rows, uint64_t key);
  int64_t row(int64_t rank) const;

 private:
  uint64_t rows_, mask_, key_;
  int shift_;
};

/// Lookups of one table of a shape: Zipf's law over ranks, and ranks permuted over rows, in a way
/// that is a function of the shape and the table alone.
class TableLaw {
 public:
  TableLaw(const FrozenShape& shape, size_t table, double zipf);
  /// The row from 128 uniform bits.
  int64_t row(uint64_t bits, uint64_t more) const {
    return permutation_.row(law_.sample(bits, more));
  }
  const reader::ZipfLaw& law() const { return law_; }
  const RowPermutation& permutation() const { return permutation_; }

 private:
  reader::ZipfLaw law_;
  RowPermutation permutation_;
};

/// Rows of samples of a shape, as a function of (shape, zipf, seed, sample).
class ShapeDraw {
 public:
  ShapeDraw(const FrozenShape& shape, double zipf, uint64_t seed);
  /// Samples [first, first + samples) as the batch that a store would be given.
  void draw(int64_t first, int64_t samples, SparseBatch& batch, ThreadPool& pool) const;

 private:
  std::vector<TableLaw> tables_;
  uint64_t seed_;
};

/// Counts of lookups / tables samples, rounded down, cut to a file of `bytes` (0: by default).
/// Fails where the machine does not have a byte a row.
Result<AccessCounts> draw_counts(const FrozenShape& shape, double zipf, uint64_t seed,
                                 int64_t lookups, ThreadPool& pool, int64_t bytes = 0);

}  // namespace recmill::bench
