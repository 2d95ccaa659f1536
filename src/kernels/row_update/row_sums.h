// SPDX-License-Identifier: Apache-2.0
// Sums of row gradients straight from the bags, for templates that need no DistinctRows.
//
// The gradient of a lookup and the order of summation are those of gradient_sums.h: within a slice
// the fold from +0 over (feature, sample, position), over slices the tree. Absent parts may be
// zeros, which gives the same bits (comm/slice_tree.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/row_update/gradient_sums.h"
#include "kernels/schedule/schedule.h"

namespace recmill::kernels {

/// One feature's bags in one batch and the gradients of what they gave.
struct BagGradients {
  JaggedView bags;
  Pooling pooling = Pooling::sum;
  GradientRows gradients;                 // row i of sample i; unpooled: of lookup i
  std::span<const int64_t> slice_begins;  // [slices + 1], sample
};

/// All lookups of one table in one iteration.
struct TableBags {
  std::span<const BagGradients> features;  // in the order of summation
  int64_t rows = 0;                        // of the table: every row named is in [0, rows)
  int64_t dim = 0;
  int slices = 1;  // of the global batch, a power of two

  int64_t lookups() const {
    int64_t total = 0;
    for (const BagGradients& feature : features) total += feature.bags.lookups();
    return total;
  }
};

/// Calls body(row) for every lookup, feature after feature.
template <class Body>
void for_each_row(const TableBags& bags, const Body& body) {
  for (const auto& feature : bags.features) {
    const int64_t* const rows = feature.bags.rows;
    const int64_t begin = feature.bags.samples == 0 ? 0 : feature.bags.offsets[0];
    for (int64_t j = begin; j < begin + feature.bags.lookups(); ++j) body(rows[j]);
  }
}

/// The body of a template: sums one table after the other, in memory of its own. For one thread at
/// a time; take() of disjoint rows may run on several.
class RowSums {
 public:
  virtual ~RowSums() = default;
  /// Looks at every lookup. `values` are the template's parameters. All rows of the table before
  /// must have been taken.
  virtual void fold(const TableBags& bags, ParameterValues values) = 0;
  /// The rows that a lookup named, each once, in any order.
  virtual std::span<const int64_t> rows() const = 0;
  /// The gradients of rows()[first .. first + count): out [count][dim]. Each row once, while the
  /// bags that were folded are still there.
  virtual void take(int64_t first, int64_t count, float* out) = 0;
};

/// The rows that the lookups name, each once, ascending: what rows() must list.
std::vector<int64_t> touched_rows(const TableBags& bags);

}  // namespace recmill::kernels
