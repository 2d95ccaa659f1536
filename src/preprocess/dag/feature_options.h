// SPDX-License-Identifier: Apache-2.0
// What a user says about features and tables: defaults in [embedding], exceptions in [[tables]] and
// [[features]], operations on dense columns in [preprocess]. resolve() (preprocess/dag/resolve.h)
// turns them into a ModelSpec and a FeatureGraph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schema/options.h"
#include "schema/size_range.h"
#include "schema/store_kind.h"
#include "schema/table_spec.h"

namespace recmill::preprocess {

/// How a raw 64-bit id becomes a row of a table with `rows` rows.
///   hash        SigridHash: any id; ids may collide
///   dictionary  Categorify: the n-th distinct id of the training data gets row n (from 1); row 0
///               is that of ids never seen in training
///   direct      the id is the row
///   modulo      the id modulo rows
enum class Mapping { hash, dictionary, direct, modulo };

/// What a missing cell (an empty bag) becomes: the id `missing_id`, or a bag that stays empty.
enum class MissingId { value, empty };

/// What becomes of an id that has no row: under `direct` one outside [0, rows), under `dictionary`
/// a new one when the table is full. `clamp` takes the nearest row under `direct`, and row 0, that
/// of unseen ids, under `dictionary`; `drop` leaves the lookup out.
enum class OutOfRange { error, clamp, drop };

/// What a lookup of an id becomes that evaluation meets and the dictionary lacks.
///   row   row 0
///   zero  it is left out, so that the id adds zeros and a mean is of the ids that are known
///   mean  the mean of the rows that ids have, as they are then, in place of row 0
enum class Unseen { row, zero, mean };

/// How a feature's rows reach the model: summed, each times its weight where the column has
/// weights; the sum divided by the number of ids; the sum divided by that of the weights, which
/// without weights is the mean; or each by itself.
enum class FeaturePooling { sum, mean, weighted_mean, none };

/// Stands for a missing cell: no id of 40 bits, and one of 2^64 for ids made of text.
inline constexpr int64_t kMissingId = 0x6D697373696E6721;  // "missing!"

}  // namespace recmill::preprocess

namespace recmill {
template <>
struct EnumNames<preprocess::Mapping> {
  static constexpr std::array names{
      std::pair{preprocess::Mapping::hash, std::string_view{"hash"}},
      std::pair{preprocess::Mapping::dictionary, std::string_view{"dictionary"}},
      std::pair{preprocess::Mapping::direct, std::string_view{"direct"}},
      std::pair{preprocess::Mapping::modulo, std::string_view{"modulo"}}};
};
template <>
struct EnumNames<preprocess::MissingId> {
  static constexpr std::array names{
      std::pair{preprocess::MissingId::value, std::string_view{"value"}},
      std::pair{preprocess::MissingId::empty, std::string_view{"empty"}}};
};
template <>
struct EnumNames<preprocess::Unseen> {
  static constexpr std::array names{std::pair{preprocess::Unseen::row, std::string_view{"row"}},
                                    std::pair{preprocess::Unseen::zero, std::string_view{"zero"}},
                                    std::pair{preprocess::Unseen::mean, std::string_view{"mean"}}};
};
template <>
struct EnumNames<preprocess::FeaturePooling> {
  static constexpr std::array names{
      std::pair{preprocess::FeaturePooling::sum, std::string_view{"sum"}},
      std::pair{preprocess::FeaturePooling::mean, std::string_view{"mean"}},
      std::pair{preprocess::FeaturePooling::weighted_mean, std::string_view{"weighted_mean"}},
      std::pair{preprocess::FeaturePooling::none, std::string_view{"none"}}};
};
template <>
struct EnumNames<preprocess::OutOfRange> {
  static constexpr std::array names{
      std::pair{preprocess::OutOfRange::error, std::string_view{"error"}},
      std::pair{preprocess::OutOfRange::clamp, std::string_view{"clamp"}},
      std::pair{preprocess::OutOfRange::drop, std::string_view{"drop"}}};
};
}  // namespace recmill

namespace recmill::preprocess {

struct EmbeddingOptions {
  StoreKind store = StoreKind::local;
  int64_t dim = 16;
  std::vector<int64_t> rows;
  RowOptimizerOptions optimizer;
  RowPrecision precision = RowPrecision::float32;
  double initial_scale = 0.0;
  std::optional<Sharding> sharding;
  Mapping mapping = Mapping::hash;
  OutOfRange out_of_range = OutOfRange::error;
  int64_t min_count = 1;
  Unseen unseen = Unseen::row;
  MissingId missing = MissingId::value;
  int64_t missing_id = kMissingId;
  FeaturePooling pooling = FeaturePooling::sum;
  int64_t max_length = 0;
};

/// One [[tables]] entry: what differs from [embedding].
struct TableOptions {
  std::string name;
  std::optional<int64_t> rows;
  std::optional<int64_t> dim;
  std::optional<OptimizerKind> optimizer;
  std::optional<double> learning_rate;
  std::optional<double> l2;
  std::optional<BiasCorrection> correction;
  std::optional<RowPrecision> precision;
  std::optional<double> initial_scale;
  std::optional<Sharding> sharding;
  std::optional<Mapping> mapping;
  std::optional<OutOfRange> out_of_range;
  std::optional<int64_t> min_count;
  std::optional<Unseen> unseen;
  bool frozen = false;
};

/// One [[features]] entry. A column that any entry names gets only the features named there; every
/// other id column is a feature of its own name, in a table of its own name.
struct FeatureOptions {
  std::string name;
  std::string column;
  std::string table;
  std::optional<MissingId> missing;
  std::optional<int64_t> missing_id;
  std::optional<FeaturePooling> pooling;
  std::optional<int64_t> max_length;
  std::optional<bool> weighted;
  std::vector<double> borders;
};

struct PreprocessOptions {
  std::vector<std::string> dense = {"fill_null", "log"};
  double fill_value = 0.0;
  double clamp_low = 0.0;
  double clamp_high = 1.0;
};

template <typename Visitor>
void describe(Visitor& v, EmbeddingOptions& o) {
  v("store", o.store,
    "where rows are stored: local (split over the ranks), placed (where a plan puts them, "
    "placement.plan), cached (at a home, with those that the next batches use in a cache, one "
    "rank) "
    "or plain (the slow reference, one rank); a GPU as device supports local only");
  v("dim", o.dim, "dimension of an embedding row", size_range());
  v("rows", o.rows, "rows of a table: one number, or one for each id column in order",
    size_range());
  v("optimizer", o.optimizer, "row optimizer");
  v("precision", o.precision, "rows are float32, bfloat16 or float16");
  v("initial_scale", o.initial_scale,
    "first values are uniform in [-scale, scale); 0: 1 / sqrt(rows)", at_least(0));
  v("sharding", o.sharding,
    "how the local store splits a table over the ranks: hash (each row at a rank of its own), "
    "table (whole, where there is most room), row_range (rows that follow each other) or column "
    "(columns in groups of 16); if not given: hash, or with rows on GPUs table, which is all that "
    "they have");
  v("mapping", o.mapping, "from raw id to row: hash, dictionary, direct or modulo");
  v("out_of_range", o.out_of_range,
    "an id that has no row (direct: outside [0, rows); dictionary: new when the table is full) is "
    "an error, clamped (to the nearest row; to row 0), or dropped: error, clamp, drop");
  v("min_count", o.min_count,
    "dictionary: an id gets a row of its own at its lookup of this number in the first epoch (1: "
    "the first); before that, and for good if it has fewer, it trains row 0, that of unseen ids",
    at_least(1));
  v("unseen", o.unseen,
    "dictionary: an id that evaluation looks up and that has no row is row 0; or is left out, as "
    "zeros; or is the mean of the rows that ids have, for which each evaluation reads all rows "
    "once: row, zero, mean");
  v("missing", o.missing, "a missing cell is an id of its own, or an empty bag: value, empty");
  v("missing_id", o.missing_id, "the id that a missing cell stands for under missing = \"value\"",
    any_number());
  v("pooling", o.pooling,
    "rows of a bag are summed, averaged (divided by their number, or with weights by the sum of "
    "these: weighted_mean) or handed on: sum, mean, weighted_mean, none");
  v("max_length", o.max_length, "longer bags keep their first ids only; 0: no limit");
}
template <typename Visitor>
void describe(Visitor& v, TableOptions& o) {
  v("name", o.name, "name of the table");
  v("rows", o.rows, "rows, in place of embedding.rows", size_range());
  v("dim", o.dim, "dimension, in place of embedding.dim", size_range());
  v("optimizer", o.optimizer, "kind of optimizer, in place of embedding.optimizer.kind");
  v("learning_rate", o.learning_rate, "in place of embedding.optimizer.learning_rate", at_least(0));
  v("l2", o.l2, "in place of embedding.optimizer.l2", at_least(0));
  v("correction", o.correction, "in place of embedding.optimizer.correction");
  v("precision", o.precision, "in place of embedding.precision");
  v("initial_scale", o.initial_scale, "in place of embedding.initial_scale", at_least(0));
  v("sharding", o.sharding, "in place of embedding.sharding");
  v("mapping", o.mapping, "in place of embedding.mapping");
  v("out_of_range", o.out_of_range, "in place of embedding.out_of_range");
  v("min_count", o.min_count, "in place of embedding.min_count", at_least(1));
  v("unseen", o.unseen, "in place of embedding.unseen");
  v("frozen", o.frozen, "rows are looked up and never updated");
}
template <typename Visitor>
void describe(Visitor& v, FeatureOptions& o) {
  v("name", o.name, "name of the feature");
  v("column", o.column, "column that it reads; empty: the one of the same name");
  v("table", o.table, "table that it looks up, shared by all that name it; empty: its own name");
  v("missing", o.missing, "in place of embedding.missing");
  v("missing_id", o.missing_id, "in place of embedding.missing_id", any_number());
  v("pooling", o.pooling, "in place of embedding.pooling");
  v("max_length", o.max_length, "in place of embedding.max_length");
  v("weighted", o.weighted,
    "the column's weights multiply the rows; true where the column has weights");
  v("borders", o.borders,
    "for a dense column: its value becomes the number of borders below it, as a row", any_number());
}
template <typename Visitor>
void describe(Visitor& v, PreprocessOptions& o) {
  v("dense", o.dense,
    "operations on every dense column, in order: fill_null, clamp, log (ln(1 + x), of values below "
    "0 as of 0), standardize ((x - mean) / deviation of the training rows)");
  v("fill_value", o.fill_value, "fill_null: the value of a missing cell", any_number());
  v("clamp_low", o.clamp_low, "clamp: smallest value", any_number());
  v("clamp_high", o.clamp_high, "clamp: largest value", any_number());
}

}  // namespace recmill::preprocess
