// SPDX-License-Identifier: Apache-2.0
// The cells of a synthetic log: each a function of (seed, column, row), so that any row can be made
// without those before it. An id is known by its *position*, the rank of its popularity before any
// drift; a keyed bijection turns positions into the raw ids that readers see.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

#include "base/random.h"
#include "reader/synthetic/even_law.h"
#include "reader/synthetic/synthetic_options.h"
#include "reader/synthetic/zipf_law.h"

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

/// Lengths of cells that are not empty.
class LengthTable {
 public:
  explicit LengthTable(const SyntheticIdColumn& column);
  int64_t sample(uint64_t bits) const { return least_ + table_.sample(bits); }
  double mean() const { return mean_; }

 private:
  LengthTable(int64_t least, std::span<const double> weights);
  int64_t least_;
  AliasTable table_;  // of length - least_
  double mean_ = 0;
};

/// The tables that columns of one kind share: a workload has thousands of columns and few kinds.
class SharedTables {
 public:
  std::shared_ptr<const ZipfLaw> zipf(int64_t ranks, double exponent);
  /// Null where every length is max_length.
  std::shared_ptr<const LengthTable> lengths(const SyntheticIdColumn& column);

 private:
  std::map<std::pair<int64_t, double>, std::shared_ptr<const ZipfLaw>> zipf_;
  std::map<std::tuple<LengthLaw, double, double, int64_t>, std::shared_ptr<const LengthTable>>
      lengths_;
};

class IdSource {
 public:
  /// Random numbers: `line` is the stream of lengths, that of the column where it has no line;
  /// `rows` that of the quantiles that columns have in common, `choices` says which ids take them.
  struct Streams {
    uint64_t seed = 0, column = 0, line = 0, rows = 0, choices = 0;
  };
  /// Each id is that at its row's quantile with probability `popularity`, else one drawn alone:
  /// either way by the column's law.
  static Result<IdSource> make(const SyntheticIdColumn& column, const Streams& streams,
                               int64_t id_bits, SharedTables& tables, double popularity = 0.0);

  const SyntheticIdColumn& column() const { return column_; }
  bool one_each() const { return column_.max_length == 1 && !lengths_ && column_.empty_share == 0; }

  /// Ids in the cell of `row`.
  int64_t length(int64_t row) const;
  /// Position, in [0, cardinality), of id `element` in the cell of `row`.
  int64_t position(int64_t row, int64_t element) const;
  uint64_t raw_id(int64_t position) const;
  /// The raw ids of the first ids.size() elements of the cell of `row`.
  void cell(int64_t row, std::span<uint64_t> ids) const;

  /// Mean share over rows [0, rows) of an id among the column's lookups. Exact for the law drawn
  /// from, with the drift taken as continuous.
  double mean_share(int64_t position, int64_t rows) const;
  /// Mean number of ids of a cell that is not empty.
  double mean_length() const;
  /// Expected lookups of the whole column in `rows` rows.
  double expected_lookups(int64_t rows) const {
    return static_cast<double>(rows) * (1.0 - column_.empty_share) * mean_length();
  }

 private:
  IdSource(const SyntheticIdColumn& column, const Streams& streams, int64_t id_bits);
  double probability(int64_t rank) const;
  /// Whether an id takes its row's quantile.
  bool takes_common(int64_t row, int64_t element) const {
    return choices_.bits(static_cast<uint64_t>(row), static_cast<uint64_t>(element)) < common_;
  }
  int64_t rank_at(uint64_t quantile) const;
  /// Where popularity, having moved on until `row`, has put a rank.
  int64_t drifted(int64_t rank, int64_t row, uint64_t word) const;
  double share_at(int64_t rank) const { return probability(rank % column_.cardinality); }
  template <typename Law>
  void even_cell(const Law& law, int64_t row, std::span<uint64_t> ids) const;

  SyntheticIdColumn column_;
  std::shared_ptr<const ZipfLaw> zipf_;         // law = zipf
  std::shared_ptr<const LengthTable> lengths_;  // null: every cell that is not empty has max_length
  Random random_;
  Random rows_, choices_;  // popularity
  uint64_t common_ = 0;    // of 2^32 ids, how many take their row's quantile
  Scatter scatter_;        // direct
  uint64_t key_, length_key_;
  int64_t id_bits_;
};

}  // namespace recmill::reader
