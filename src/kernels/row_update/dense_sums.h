// SPDX-License-Identifier: Apache-2.0
// Row gradients summed in place: each slice's fold of every row of the table has a place of
// its own. For small tables of which a batch names many rows.
//
//   sums [leaves][rows][dim] = 0
//   for group of `leaves` slices:
//     for slice s of the group, feature, sample, position:
//       sums[s - first][row] = sums[s - first][row] + gradient; row is touched
//     for touched row: total = the tree over sums[.][row], which become 0 again,
//       joined with what waits of the groups to the left, as the tree joins them
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/buffer.h"
#include "kernels/row_update/row_sums.h"

namespace recmill::kernels {

/// How the sums of a group of slices leave it.
struct DenseJoin {
  float* sums = nullptr;  // [leaves, then what waits][rows][stride]
  int64_t size = 0;       // rows * stride
  int64_t stride = 0;     // floats from row to row: dim, rounded up to 4
  int64_t dim = 0;
  int leaves = 1;
  int waiting = 0;    // sums that wait and are joined, the smallest subtree first
  bool wait = false;  // the total waits behind these, else it goes out
};

/// Its memory is zero between tables. Rows are listed in ascending order where they are many, else
/// as they come.
class DenseSums final : public RowSums {
 public:
  /// The template: its name, parameters (leaves: slices whose folds are side by side) and where
  /// it is valid.
  static TemplateSpec spec();

  void fold(const TableBags& bags, ParameterValues values) override;
  std::span<const int64_t> rows() const override { return rows_; }
  void take(int64_t first, int64_t count, float* out) override;

 private:
  void list_rows(const TableBags& bags);

  Buffer sums_;                   // zeros
  std::vector<uint8_t> touched_;  // [rows], zeros
  std::vector<int64_t> rows_;
  DenseJoin last_;  // of the last group
};

}  // namespace recmill::kernels
