// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/synthetic_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reader/synthetic/zipf_law.h"
#include "schema/option_ranges.h"

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

/// "key: what, is value" unless `holds`.
Status require(bool holds, const std::string& key, const char* what, double value) {
  if (holds) return {};
  return Status::BadRequest(fmt::format("{}: {}, is {:.12g}", key, what, value));
}

Status check(const SyntheticDenseColumn& column, const std::string& at) {
  return require(column.missing_share + column.negative_share < 1, at + ".negative_share",
                 "must be below 1 with missing_share added", column.negative_share);
}

/// The laws of ids and lengths, as far as the kind of law decides what is possible.
Status check_laws(const SyntheticIdColumn& column, const std::string& at) {
  if (column.law != IdLaw::zipf) {
    RECMILL_RETURN_IF_ERROR(require(column.top_percent == 0, at + ".top_percent",
                                    "must be 0 but for law = \"zipf\"", column.top_percent));
    RECMILL_RETURN_IF_ERROR(require(column.drift == 0, at + ".drift",
                                    "must be 0 but for law = \"zipf\"", column.drift));
  }
  if (column.law != IdLaw::zipf || column.direct) {
    RECMILL_RETURN_IF_ERROR(
        require(column.cardinality <= int64_t{1} << 31, at + ".cardinality",
                "must be at most 2^31 with direct = true, and where law is not \"zipf\"",
                static_cast<double>(column.cardinality)));
  }
  if (column.lengths == LengthLaw::normal) {
    return require(column.deviation >= 0.001, at + ".deviation",
                   "must be at least 0.001 with lengths = \"normal\"", column.deviation);
  }
  return require(column.deviation == 0, at + ".deviation", "must be 0 but for lengths = \"normal\"",
                 column.deviation);
}

Status check(const SyntheticIdColumn& column, const std::string& at, int64_t id_bits) {
  RECMILL_RETURN_IF_ERROR(check_laws(column, at));
  RECMILL_RETURN_IF_ERROR(require(id_bits == 64 || column.cardinality <= int64_t{1} << 32,
                                  at + ".cardinality", "must be at most 2^32 with id_bits = 32",
                                  static_cast<double>(column.cardinality)));
  RECMILL_RETURN_IF_ERROR(require(column.mean_length <= static_cast<double>(column.max_length),
                                  at + ".mean_length", "must be at most max_length",
                                  column.mean_length));
  if (column.top_percent == 0 && column.top_access_percent == 0) return {};
  RECMILL_RETURN_IF_ERROR(require(column.top_percent > 0, at + ".top_percent",
                                  "must be above 0 with top_access_percent", column.top_percent));
  return require(column.top_access_percent > 0, at + ".top_access_percent",
                 "must be above 0 with top_percent", column.top_access_percent);
}

Status check(const SyntheticOptions& o, const std::string& at) {
  RECMILL_RETURN_IF_ERROR(require(o.id_bits == 32 || o.id_bits == 64, at + "id_bits",
                                  "must be 32 or 64", static_cast<double>(o.id_bits)));
  for (size_t i = 0; i < o.dense.size(); ++i)
    RECMILL_RETURN_IF_ERROR(check(o.dense[i], at + "dense[" + std::to_string(i) + "]"));
  for (size_t i = 0; i < o.ids.size(); ++i)
    RECMILL_RETURN_IF_ERROR(check(o.ids[i], at + "ids[" + std::to_string(i) + "]", o.id_bits));
  const int64_t small_columns =
      std::count_if(o.ids.begin(), o.ids.end(), [](const auto& c) { return can_be_crossed(c); });
  return require(o.planted.crosses <= small_columns / 2, at + "planted.crosses",
                 "each cross takes two columns of one id and 4 to 1,000 different ids",
                 static_cast<double>(o.planted.crosses));
}

}  // namespace

bool can_be_crossed(const SyntheticIdColumn& column) {
  return column.max_length == 1 && column.cardinality >= 4 && column.cardinality <= 1000;
}

Result<SyntheticOptions> resolve(SyntheticOptions o, const std::string& section) {
  RECMILL_RETURN_IF_ERROR(check_ranges(o, section));
  const std::string at = section.empty() ? "" : section + ".";
  if (o.shape == SyntheticShape::criteo) {
    if (!o.dense.empty() || !o.ids.empty()) {
      return Status::BadRequest(
          at +
          "shape: \"criteo\" has columns of its own; to list columns, write shape = \"columns\"");
    }
    fill_criteo(o);
    o.shape = SyntheticShape::columns;
  }
  RECMILL_RETURN_IF_ERROR(check(o, at));
  return o;
}

}  // namespace recmill::reader
