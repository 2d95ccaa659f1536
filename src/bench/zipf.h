// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace recmill::bench {

/// Rows of one table by Zipf's law over ranks 1 .. rows, the ranks permuted over the rows.
class ZipfRows {
 public:
  /// `shift` moves the permutation, so that tables of one size differ.
  ZipfRows(int64_t rows, double exponent, int64_t shift);

  /// The row for `uniform` in [0, 1).
  int64_t row(double uniform) const;

 private:
  const int64_t rows_, shift_;
  int64_t stride_ = 7919;
  std::vector<double> shares_;  // cumulative, by rank
};

}  // namespace recmill::bench
