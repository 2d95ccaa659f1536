// SPDX-License-Identifier: Apache-2.0
#include "kernels/near_rows/near_rows.h"

#include <utility>

#include "base/status.h"

namespace recmill::kernels {
namespace {

int64_t lines_of(int64_t rows) {
  return (rows + gpu::NearLine::kRows - 1) / gpu::NearLine::kRows;
}

}  // namespace

NearRows::NearRows(int64_t rows, std::vector<int64_t> near)
    : rows_(rows), near_(std::move(near)), lines_(static_cast<size_t>(lines_of(rows))) {
  int64_t last = -1;
  for (const int64_t row : near_) {
    RECMILL_CHECK(row > last && row < rows_, "near rows ascend, and are rows of the table");
    const int64_t at = row % gpu::NearLine::kRows;
    lines_[row / gpu::NearLine::kRows].bits[at / 64] |= uint64_t{1} << (at % 64);
    last = row;
  }
  int64_t before = 0;
  for (gpu::NearLine& line : lines_) {
    line.before = before;
    for (int64_t word = 0; word < gpu::NearLine::kWords; ++word) {
      line.before_words |= static_cast<uint64_t>(before - line.before)
                           << (word * gpu::NearLine::kCountBits);
      before += std::popcount(line.bits[word]);
    }
  }
}

int64_t NearRows::bytes_of_lines(int64_t rows) {
  return lines_of(rows) * int64_t{sizeof(gpu::NearLine)};
}

}  // namespace recmill::kernels
