// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/row_update/gradient_sums.h"
#include "kernels/row_update/row_sums.h"

namespace recmill::kernels {

namespace {

/// Element e of the gradient of one lookup.
float gradient_of_lookup(const GradientSource& source, int64_t lookup, int64_t e) {
  const DistinctRows& distinct = *source.distinct;
  const LookupSource& from = distinct.sources[lookup];
  const GradientRows& rows = source.gradients[from.feature];
  float gradient = rows.data[from.gradient_row * rows.stride + e];
  if (!distinct.counts.empty()) gradient = gradient / distinct.counts[lookup];
  if (!distinct.weights.empty()) gradient = gradient * distinct.weights[lookup];
  return gradient;
}

/// The tree's sum over `slices`: nothing where none of them has a part.
template <class PartOf>
std::optional<float> tree_of(SliceRange slices, const PartOf& part_of) {
  if (slices.size() == 1) return part_of(slices.begin);
  const int middle = (slices.begin + slices.end) / 2;
  const auto left = tree_of({slices.begin, middle}, part_of);
  const auto right = tree_of({middle, slices.end}, part_of);
  if (!left || !right) return left ? left : right;
  return *left + *right;
}

}  // namespace

void sum_gradients_reference(const GradientSource& source, const SumRange& range,
                             std::span<const SliceRange> subtrees, float* out) {
  const DistinctRows& distinct = *source.distinct;
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t row = range.order != nullptr ? range.order[i] : range.begin + i;
    for (const SliceRange& subtree : subtrees) {
      for (int64_t e = 0; e < source.dim; ++e) {
        const auto part_of = [&](int slice) -> std::optional<float> {
          std::optional<float> sum;
          for (int64_t j = distinct.begins[row]; j < distinct.begins[row + 1]; ++j) {
            if (distinct.sources[j].slice != slice) continue;
            sum = sum.value_or(0.0f) + gradient_of_lookup(source, j, e);
          }
          return sum;
        };
        *out++ = tree_of(subtree, part_of).value_or(0.0f);
      }
    }
  }
}

void sum_parts_reference(const RowParts& rows, int64_t begin, int64_t count, int64_t dim,
                         float* out) {
  for (int64_t i = begin; i < begin + count; ++i) {
    const auto parts = rows.parts.subspan(rows.begins[i], rows.begins[i + 1] - rows.begins[i]);
    const int slices =
        parts.empty() ? 1 : static_cast<int>(std::bit_ceil(unsigned(parts.back().first) + 1));
    for (int64_t e = 0; e < dim; ++e) {
      const auto part_of = [&](int slice) -> std::optional<float> {
        for (const auto& part : parts) {
          if (part.first == slice) return part.data[e];
        }
        return {};
      };
      *out++ = tree_of({0, slices}, part_of).value_or(0.0f);
    }
  }
}

std::vector<int64_t> touched_rows(const TableBags& bags) {
  std::vector<int64_t> rows;
  for (const BagGradients& feature : bags.features) {
    if (feature.bags.samples == 0) continue;
    const int64_t* begin = feature.bags.rows + feature.bags.offsets[0];
    rows.insert(rows.end(), begin, begin + feature.bags.lookups());
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace recmill::kernels
