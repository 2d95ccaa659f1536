// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "schema/table_spec.h"

namespace recmill::disk {

/// A bit for every row of every table.
class RowBits {
 public:
  explicit RowBits(std::span<const TableSpec> tables) {
    for (const TableSpec& table : tables) words_.emplace_back((table.rows + 63) / 64);
  }

  bool test(int table, int64_t row) const { return (word(table, row) >> (row % 64) & 1) != 0; }
  /// Whether it was not set.
  bool set(int table, int64_t row) {
    uint64_t& of = words_[static_cast<size_t>(table)][static_cast<size_t>(row / 64)];
    const uint64_t before = of;
    of |= uint64_t{1} << (row % 64);
    return of != before;
  }
  void clear(int table, int64_t row) {
    words_[static_cast<size_t>(table)][static_cast<size_t>(row / 64)] &=
        ~(uint64_t{1} << (row % 64));
  }
  void set_all() {
    for (auto& table : words_) table.assign(table.size(), ~uint64_t{0});
  }

  /// The first one from `row` on that is set; negative: there is none.
  int64_t next(int table, int64_t row) const {
    const auto& words = words_[static_cast<size_t>(table)];
    for (auto i = static_cast<size_t>(row / 64); i < words.size(); ++i) {
      const uint64_t of =
          static_cast<int64_t>(i) == row / 64 ? words[i] & (~uint64_t{0} << (row % 64)) : words[i];
      if (of != 0) return static_cast<int64_t>(i) * 64 + std::countr_zero(of);
    }
    return -1;
  }
  int64_t bytes() const {
    int64_t words = 0;
    for (const auto& table : words_) words += std::ssize(table);
    return words * 8;
  }

 private:
  uint64_t word(int table, int64_t row) const {
    return words_[static_cast<size_t>(table)][static_cast<size_t>(row / 64)];
  }
  std::vector<std::vector<uint64_t>> words_;  // [tables]
};

}  // namespace recmill::disk
