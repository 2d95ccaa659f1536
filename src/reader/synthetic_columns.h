// SPDX-License-Identifier: Apache-2.0
// The cells of a synthetic log: each a function of (seed, column, row), so that any row can be made
// without those before it. An id is known by its *position*, the rank of its popularity before any
// drift; a keyed bijection turns positions into the raw ids that readers see.
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "reader/synthetic_options.h"
#include "reader/zipf_law.h"

namespace recmill::reader {

class DenseSource {
 public:
  DenseSource(const SyntheticDenseColumn& column, uint64_t seed, uint64_t stream);
  /// A count, -1 or -2; NaN: missing.
  float value(int64_t row) const;
  /// Mean and variance of ln(1 + max(x, 0)), where a missing x counts as 0.
  double log_mean() const { return log_mean_; }
  double log_variance() const { return log_variance_; }

 private:
  ZipfLaw law_;
  Random random_;
  double missing_share_, negative_share_;
  double log_mean_, log_variance_;
};

class IdSource {
 public:
  static Result<IdSource> make(const SyntheticIdColumn& column, uint64_t seed, uint64_t stream,
                               int64_t id_bits);

  const SyntheticIdColumn& column() const { return column_; }
  bool one_each() const { return column_.max_length == 1 && column_.empty_share == 0; }

  /// Ids in the cell of `row`.
  int64_t length(int64_t row) const;
  /// Position, in [0, cardinality), of id `element` in the cell of `row`.
  int64_t position(int64_t row, int64_t element) const;
  uint64_t raw_id(int64_t position) const;

  /// Mean share over rows [0, rows) of an id among the column's lookups. Exact for the law drawn
  /// from, with the drift taken as continuous.
  double mean_share(int64_t position, int64_t rows) const;
  /// Expected lookups of the whole column in `rows` rows.
  double expected_lookups(int64_t rows) const {
    return static_cast<double>(rows) * (1.0 - column_.empty_share) * column_.mean_length;
  }

 private:
  IdSource(const SyntheticIdColumn& column, ZipfLaw law, uint64_t seed, uint64_t stream,
           int64_t id_bits);
  double share_at(int64_t rank) const { return law_.probability(rank % column_.cardinality); }

  SyntheticIdColumn column_;
  ZipfLaw law_;
  std::optional<AliasTable> lengths_;  // of length - 1; none when every bag has one id
  Random random_;
  uint64_t key_;
  int64_t id_bits_;
};

}  // namespace recmill::reader
