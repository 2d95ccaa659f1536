// SPDX-License-Identifier: Apache-2.0
// Row gradients summed row by row, after a counting sort of the lookups by row. For tables whose
// rows can be counted one by one in a cache.
//
//   number the bags that are not empty (unpooled: the lookups) in the order of summation
//   gradients[number] = the bag's gradient, for a mean divided by its lookups; side by side
//   count the lookups of each row; give each row as many places; put each lookup's number there
//   for row: part[s] = fold from +0 over its lookups in slice s; sum = the tree over parts
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/row_update/row_sums.h"

namespace recmill::kernels {

/// The lookups of a table, row by row, as the sums go through them.
struct PlacedLookups {
  const float* gradients = nullptr;   // [numbers][stride]
  const uint16_t* slices = nullptr;   // [numbers]
  const int64_t* begins = nullptr;    // [rows + 1], into numbers
  const uint32_t* numbers = nullptr;  // [lookups], each row's in the order of summation
  const float* weights = nullptr;     // [lookups] beside numbers, or null: all 1
  int64_t stride = 0;                 // floats: dim, rounded up to 4, +0 behind dim
  int64_t dim = 0;
  int slices_of_batch = 1;
};

class PlacedSums final : public RowSums {
 public:
  /// The template: its name, parameters (by_count: the order of rows) and where it is valid.
  static TemplateSpec spec();

  void fold(const TableBags& bags, ParameterValues values) override;
  std::span<const int64_t> rows() const override { return rows_; }
  void take(int64_t first, int64_t count, float* out) override;

 private:
  void number_gradients(const TableBags& bags);
  void count_rows(const TableBags& bags);
  void order_rows(bool by_count);
  void place_lookups(const TableBags& bags);

  std::vector<float> gradients_;
  std::vector<uint16_t> slices_;
  std::vector<uint32_t> counts_;  // [rows of the table], zeros between tables
  std::vector<int64_t> listed_;   // touched rows
  std::vector<int64_t> rows_;     // touched
  std::vector<int64_t> begins_;   // [touched + 1]
  std::vector<uint32_t> numbers_;
  std::vector<float> weights_;
  PlacedLookups placed_;
};

}  // namespace recmill::kernels
