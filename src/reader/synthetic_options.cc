// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic_options.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reader/zipf_law.h"

namespace recmill::reader {
namespace {

// Distinct ids of Criteo's Kaggle data by column, and which of its columns have empty cells.
constexpr std::array<int64_t, 26> kaggle_cardinalities{
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};
constexpr std::array<bool, 26> kaggle_ids_missing{
    false, false, true, true,  false, false, false, false, false, false, false, true, false,
    false, false, true, false, false, true,  true,  true,  true,  false, true,  true, true};
// Shapes of the 13 counts: largest value, exponent, whether cells are empty.
struct Count {
  int64_t maximum;
  double zipf;
  bool missing;
};
constexpr std::array<Count, 13> criteo_counts{{{1000, 1.3, true},
                                               {20000, 1.0, false},
                                               {10000, 1.1, true},
                                               {400, 0.9, true},
                                               {1000000, 0.8, false},
                                               {100000, 0.9, true},
                                               {10000, 1.1, false},
                                               {4000, 0.9, false},
                                               {20000, 0.9, false},
                                               {8, 1.0, true},
                                               {200, 1.2, false},
                                               {2000, 1.5, true},
                                               {6000, 1.0, true}}};
constexpr int column_with_negatives = 1;  // I2

void fill_criteo(SyntheticOptions& o) {
  for (size_t i = 0; i < criteo_counts.size(); ++i) {
    const Count& count = criteo_counts[i];
    o.dense.push_back({.name = "I" + std::to_string(i + 1),
                       .maximum = count.maximum,
                       .zipf = count.zipf,
                       .missing_share = count.missing ? o.missing_share : 0.0,
                       .negative_share = i == column_with_negatives ? 0.1 : 0.0});
  }
  for (size_t i = 0; i < kaggle_cardinalities.size(); ++i) {
    int64_t cardinality = kaggle_cardinalities[i];
    if (cardinality > 10000) {
      cardinality =
          std::max<int64_t>(10000, static_cast<int64_t>(cardinality * o.cardinality_scale));
    }
    o.ids.push_back({.name = "C" + std::to_string(i + 1),
                     .cardinality = cardinality,
                     .zipf = o.zipf,
                     .top_percent = o.top_percent,
                     .top_access_percent = o.top_access_percent,
                     .drift = o.drift,
                     .empty_share = kaggle_ids_missing[i] ? o.missing_share : 0.0});
  }
}

/// "key = value: reason" unless `valid`.
Status require(bool valid, const std::string& key, double value, const char* reason) {
  if (valid) return {};
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return Status::BadRequest(
      key + " = " + (whole ? std::to_string(static_cast<int64_t>(value)) : std::to_string(value)) +
      ": " + reason);
}

Status check_share(const std::string& key, double value) {
  return require(value >= 0 && value < 1, key, value, "a share is in [0, 1)");
}

Status check(const SyntheticDenseColumn& column, const std::string& at) {
  RECMILL_RETURN_IF_ERROR(require(column.maximum >= 1 && column.maximum < (int64_t{1} << 31),
                                  at + ".maximum", static_cast<double>(column.maximum),
                                  "must be in [1, 2^31)"));
  RECMILL_RETURN_IF_ERROR(require(column.zipf >= 0 && column.zipf <= 20, at + ".zipf", column.zipf,
                                  "must be in [0, 20]"));
  RECMILL_RETURN_IF_ERROR(check_share(at + ".missing_share", column.missing_share));
  RECMILL_RETURN_IF_ERROR(check_share(at + ".negative_share", column.negative_share));
  return check_share(at + ".missing_share + .negative_share",
                     column.missing_share + column.negative_share);
}

/// The laws of ids and lengths, as far as the kind of law decides what is possible.
Status check_laws(const SyntheticIdColumn& column, const std::string& at) {
  if (column.law != IdLaw::zipf) {
    RECMILL_RETURN_IF_ERROR(require(column.top_percent == 0, at + ".top_percent",
                                    column.top_percent, "is for law = \"zipf\""));
    RECMILL_RETURN_IF_ERROR(
        require(column.drift == 0, at + ".drift", column.drift, "is for law = \"zipf\""));
  }
  if (column.law != IdLaw::zipf || column.direct) {
    RECMILL_RETURN_IF_ERROR(
        require(column.cardinality <= int64_t{1} << 31, at + ".cardinality",
                static_cast<double>(column.cardinality),
                "must be at most 2^31 with direct = true, and where law is not \"zipf\""));
  }
  if (column.lengths == LengthLaw::normal) {
    return require(column.deviation > 0, at + ".deviation", column.deviation,
                   "must be positive with lengths = \"normal\"");
  }
  return require(column.deviation == 0, at + ".deviation", column.deviation,
                 "is for lengths = \"normal\"");
}

Status check(const SyntheticIdColumn& column, const std::string& at, int64_t id_bits) {
  RECMILL_RETURN_IF_ERROR(check_laws(column, at));
  const int64_t most = id_bits == 32 ? int64_t{1} << 32 : int64_t{1} << 40;
  RECMILL_RETURN_IF_ERROR(require(column.cardinality >= 1 && column.cardinality <= most,
                                  at + ".cardinality", static_cast<double>(column.cardinality),
                                  "must be in [1, 2^32], or to 2^40 with id_bits = 64"));
  RECMILL_RETURN_IF_ERROR(require(column.zipf >= 0 && column.zipf <= 20, at + ".zipf", column.zipf,
                                  "must be in [0, 20]"));
  RECMILL_RETURN_IF_ERROR(
      require(column.drift >= 0, at + ".drift", column.drift, "must not be negative"));
  RECMILL_RETURN_IF_ERROR(require(column.max_length >= 1 && column.max_length <= 1000000,
                                  at + ".max_length", static_cast<double>(column.max_length),
                                  "must be in [1, 1000000]"));
  RECMILL_RETURN_IF_ERROR(require(
      column.mean_length >= 1 && column.mean_length <= static_cast<double>(column.max_length),
      at + ".mean_length", column.mean_length, "must be in [1, max_length]"));
  RECMILL_RETURN_IF_ERROR(require(column.empty_share >= 0 && column.empty_share <= 1,
                                  at + ".empty_share", column.empty_share,
                                  "a share of cells is in [0, 1]"));
  if (column.top_percent == 0 && column.top_access_percent == 0) return {};
  RECMILL_RETURN_IF_ERROR(require(column.top_percent > 0 && column.top_percent < 100,
                                  at + ".top_percent", column.top_percent, "must be in (0, 100)"));
  return require(column.top_access_percent > 0 && column.top_access_percent < 100,
                 at + ".top_access_percent", column.top_access_percent, "must be in (0, 100)");
}

Status check(const SyntheticOptions& o) {
  RECMILL_RETURN_IF_ERROR(
      require(o.rows >= 1, "rows", static_cast<double>(o.rows), "there must be a training row"));
  RECMILL_RETURN_IF_ERROR(require(o.eval_rows >= 0, "eval_rows", static_cast<double>(o.eval_rows),
                                  "must not be negative"));
  RECMILL_RETURN_IF_ERROR(require(o.id_bits == 32 || o.id_bits == 64, "id_bits",
                                  static_cast<double>(o.id_bits), "must be 32 or 64"));
  RECMILL_RETURN_IF_ERROR(
      require(o.groups >= 0, "groups", static_cast<double>(o.groups), "must not be negative"));
  RECMILL_RETURN_IF_ERROR(require(o.time_step >= 0, "time_step", static_cast<double>(o.time_step),
                                  "must not be negative"));
  const PlantedOptions& p = o.planted;
  RECMILL_RETURN_IF_ERROR(require(p.click_rate > 0 && p.click_rate < 1, "planted.click_rate",
                                  p.click_rate, "must be in (0, 1)"));
  for (const auto& [key, value] : {std::pair{"planted.dense_variance", p.dense_variance},
                                   std::pair{"planted.id_variance", p.id_variance},
                                   std::pair{"planted.cross_variance", p.cross_variance}}) {
    RECMILL_RETURN_IF_ERROR(require(value >= 0 && value <= 100, key, value, "must be in [0, 100]"));
  }
  RECMILL_RETURN_IF_ERROR(require(p.learnable_count > 0, "planted.learnable_count",
                                  p.learnable_count, "must be positive"));
  const int64_t small_columns =
      std::count_if(o.ids.begin(), o.ids.end(), [](const auto& c) { return can_be_crossed(c); });
  return require(p.crosses >= 0 && 2 * p.crosses <= small_columns, "planted.crosses",
                 static_cast<double>(p.crosses),
                 "each cross takes two columns of one id and 4 to 1,000 different ids");
}

}  // namespace

bool can_be_crossed(const SyntheticIdColumn& column) {
  return column.max_length == 1 && column.cardinality >= 4 && column.cardinality <= 1000;
}

Result<SyntheticOptions> resolve(SyntheticOptions o) {
  if (o.shape == SyntheticShape::criteo) {
    if (!o.dense.empty() || !o.ids.empty()) {
      return Status::BadRequest(
          "shape = \"criteo\" has columns of its own; to list columns, write "
          "shape = \"columns\"");
    }
    RECMILL_RETURN_IF_ERROR(check_share("missing_share", o.missing_share));
    RECMILL_RETURN_IF_ERROR(require(o.cardinality_scale > 0 && o.cardinality_scale <= 100,
                                    "cardinality_scale", o.cardinality_scale,
                                    "must be in (0, 100]"));
    fill_criteo(o);
    o.shape = SyntheticShape::columns;
  }
  for (size_t i = 0; i < o.dense.size(); ++i) {
    RECMILL_RETURN_IF_ERROR(check(o.dense[i], "dense[" + std::to_string(i) + "]"));
  }
  for (size_t i = 0; i < o.ids.size(); ++i) {
    RECMILL_RETURN_IF_ERROR(check(o.ids[i], "ids[" + std::to_string(i) + "]", o.id_bits));
  }
  RECMILL_RETURN_IF_ERROR(check(o));
  return o;
}

}  // namespace recmill::reader
