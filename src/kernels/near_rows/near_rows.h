// SPDX-License-Identifier: Apache-2.0
// Tables of which some rows are near, in a GPU's own memory, and all others far, in the host's.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/near_rows/gpu_near_rows_arguments.h"

namespace recmill::kernels {

/// Which rows of a table are near, and the slot of each row. The near ones have the first slots, in
/// ascending order. Behind these is a slot for every row of the table, in the table's own order:
/// so what the host has is the table itself, in which the near rows' places are not used.
class NearRows {
 public:
  /// `near`: rows of a table of `rows`, ascending.
  NearRows(int64_t rows, std::vector<int64_t> near);

  int64_t rows() const { return rows_; }
  int64_t near() const { return std::ssize(near_); }
  int64_t slots() const { return near() + rows_; }
  /// By slot.
  std::span<const int64_t> near_rows() const { return near_; }

  bool is_near(int64_t row) const {
    const int64_t at = row % gpu::NearLine::kRows;
    return (lines_[row / gpu::NearLine::kRows].bits[at / 64] >> (at % 64) & 1) != 0;
  }
  int64_t slot(int64_t row) const {
    return gpu::slot_of_row(lines_[row / gpu::NearLine::kRows], near(), row,
                            [](uint32_t bits) { return std::popcount(bits); });
  }
  int64_t row(int64_t slot) const { return slot < near() ? near_[slot] : slot - near(); }

  /// The map as a GPU has it.
  std::span<const gpu::NearLine> lines() const { return lines_; }
  /// Bytes of the lines of a table of so many rows.
  static int64_t bytes_of_lines(int64_t rows);

 private:
  int64_t rows_;
  std::vector<int64_t> near_;
  std::vector<gpu::NearLine> lines_;
};

}  // namespace recmill::kernels
