// SPDX-License-Identifier: Apache-2.0
// What is trained: embedding tables, the features that look them up, and how each is optimised.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/options.h"
#include "schema/row_optimizer_options.h"

namespace recmill {

enum class RowPrecision { float32, bfloat16, float16 };
template <>
struct EnumNames<RowPrecision> {
  static constexpr std::array names{std::pair{RowPrecision::float32, std::string_view{"float32"}},
                                    std::pair{RowPrecision::bfloat16, std::string_view{"bfloat16"}},
                                    std::pair{RowPrecision::float16, std::string_view{"float16"}}};
};

/// How a table is split over ranks (table/table_shares.h).
enum class Sharding { hash, table, row_range, column };
template <>
struct EnumNames<Sharding> {
  static constexpr std::array names{std::pair{Sharding::hash, std::string_view{"hash"}},
                                    std::pair{Sharding::table, std::string_view{"table"}},
                                    std::pair{Sharding::row_range, std::string_view{"row_range"}},
                                    std::pair{Sharding::column, std::string_view{"column"}}};
};

template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::array names{
      std::pair{OptimizerKind::sgd, std::string_view{"sgd"}},
      std::pair{OptimizerKind::adagrad, std::string_view{"adagrad"}},
      std::pair{OptimizerKind::rowwise_adagrad, std::string_view{"rowwise_adagrad"}},
      std::pair{OptimizerKind::adam, std::string_view{"adam"}},
      std::pair{OptimizerKind::ftrl, std::string_view{"ftrl"}}};
};

template <>
struct EnumNames<BiasCorrection> {
  static constexpr std::array names{std::pair{BiasCorrection::global, std::string_view{"global"}},
                                    std::pair{BiasCorrection::row, std::string_view{"row"}}};
};

template <typename Visitor>
void describe(Visitor& v, RowOptimizerOptions& o) {
  v("kind", o.kind, "sgd, adagrad, rowwise_adagrad, adam or ftrl");
  v("learning_rate", o.learning_rate, "learning rate, before warm-up and decay", at_least(0));
  v("epsilon", o.epsilon, "added to the root in adagrad, rowwise_adagrad and adam", at_least(0));
  v("initial_accumulator", o.initial_accumulator, "first value of the sum of squares", at_least(0));
  v("beta1", o.beta1, "adam: decay of the first moment", from_to_below(0, 1));
  v("beta2", o.beta2, "adam: decay of the second moment", from_to_below(0, 1));
  v("l1", o.l1, "ftrl: L1 strength", at_least(0));
  v("l2", o.l2,
    "L2 strength on the rows that an iteration looks up: times the weight, added to its gradient; "
    "in ftrl as FTRL-Proximal has it",
    at_least(0));
  v("beta", o.beta, "ftrl: smoothing of the learning rate", at_least(0));
  v("correction", o.correction,
    "adam: the bias of a row's moments is corrected by the run's iterations or by the updates of "
    "the row itself, which are kept beside it: global, row");
}

/// Initial rows: uniform in [-scale, scale); scale 0 means 1 / sqrt(rows). A function of
/// (seed, table name, row).
struct TableSpec {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  RowPrecision precision = RowPrecision::float32;
  RowOptimizerOptions optimizer;
  double initial_scale = 0.0;
  bool frozen = false;  // looked up, never updated
  Sharding sharding = Sharding::hash;
  bool operator==(const TableSpec&) const = default;
};

enum class Pooling { sum, mean, none };
template <>
struct EnumNames<Pooling> {
  static constexpr std::array names{std::pair{Pooling::sum, std::string_view{"sum"}},
                                    std::pair{Pooling::mean, std::string_view{"mean"}},
                                    std::pair{Pooling::none, std::string_view{"none"}}};
};

/// One way of looking a table up; several features may share a table. `none` hands the model every
/// row of the bag, in order (sequences).
struct FeatureSpec {
  std::string name;
  int table = 0;  // index into ModelSpec::tables
  Pooling pooling = Pooling::sum;
  bool weighted = false;  // lookups carry a float weight each
  /// Index of an earlier feature whose lookups (offsets, rows, weights) this one repeats in a table
  /// of its own with as many rows; -1: its ids come from the data. A model adds such features
  /// (model::with_model_tables); preprocessing fills them from that feature.
  int same_ids_as = -1;
  bool operator==(const FeatureSpec&) const = default;
};

/// What a store and a model must agree on. Order of `features` is the order of
/// SparseBatch::features and of summation.
struct ModelSpec {
  std::vector<TableSpec> tables;
  std::vector<FeatureSpec> features;
  int64_t num_dense = 0;

  int64_t dim_of(size_t feature) const { return tables[features[feature].table].dim; }
};

}  // namespace recmill
