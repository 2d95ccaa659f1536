// SPDX-License-Identifier: Apache-2.0
// The section [workload]: thousands of features in a few lines, as RecFlex (SC 2024) writes down
// its models.
#pragma once

#include <cstdint>
#include <vector>

#include "reader/synthetic/synthetic_options.h"
#include "schema/options.h"
#include "schema/size_range.h"

namespace recmill::train {

/// Ids of a cell that is not missing: always as many; normally distributed, cut off at `longest`;
/// normally distributed without such a limit. Normal lengths are never negative and rounded down.
enum class LineKind { fixed, normal, one_side };

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::LineKind> {
  static constexpr std::array names{
      std::pair{train::LineKind::fixed, std::string_view{"fixed"}},
      std::pair{train::LineKind::normal, std::string_view{"normal"}},
      std::pair{train::LineKind::one_side, std::string_view{"one_side"}}};
};
}  // namespace recmill

namespace recmill::train {

/// Features whose cells are missing together and equally long; each with ids and a table of its
/// own.
struct WorkloadLine {
  LineKind kind = LineKind::fixed;
  int64_t count = 1;
  double mean = 1.0;
  double deviation = 0.0;
  int64_t longest = 0;
  double coverage = 1.0;
  int64_t rows = 1000;
  reader::IdLaw law = reader::IdLaw::power;
  double zipf = 0.0;
  std::vector<int64_t> dims = {};
  std::vector<int64_t> dim_counts = {};
};
template <typename Visitor>
void describe(Visitor& v, WorkloadLine& o) {
  v("kind", o.kind, "ids of a cell: fixed, normal (cut off at longest), or one_side (no limit)");
  v("count", o.count, "features; in each row all of them are missing or equally long",
    between(1, 1e6));
  v("mean", o.mean, "mean number of ids of a cell, before the normal law is cut off",
    between(1, 1e6));
  v("deviation", o.deviation, "normal, one_side: standard deviation before it is cut off",
    between(0, 1e6));
  v("longest", o.longest, "normal: no cell has more ids", between(0, 1e6));
  v("coverage", o.coverage, "share of the rows in which the features are not missing",
    between(0, 1));
  v("rows", o.rows, "rows of each feature's table", between(1, 0x1p31));
  v("law", o.law, "how popular rows are: power (nearly even), uniform, or zipf");
  v("zipf", o.zipf, "law = zipf: exponent of Zipf's law", between(0, 20));
  v("dims", o.dims, "dimensions of the tables: one for all, or as many of each as dim_counts says",
    size_range());
  v("dim_counts", o.dim_counts, "features of each of dims, which take them in this order",
    between(0, 1e6));
}

struct WorkloadOptions {
  std::vector<WorkloadLine> lines;
};
template <typename Visitor>
void describe(Visitor& v, WorkloadOptions& o) {
  v("lines", o.lines,
    "id columns of data.format = \"synthetic\", each with a feature and a table: f0, f1, ...");
}

}  // namespace recmill::train
