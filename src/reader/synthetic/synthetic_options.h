// SPDX-License-Identifier: Apache-2.0
// What a synthetic click log looks like.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "schema/options.h"

namespace recmill::reader {

enum class SyntheticShape { criteo, columns };

/// How often each id of a column comes (reader/synthetic/zipf_law.h, reader/synthetic/even_law.h).
enum class IdLaw { zipf, uniform, power };

/// Lengths of the cells that are not empty.
///   geometric  q^l over 1 ... max_length, with q such that the mean is mean_length
///   fixed      max_length
///   normal     a normal law of mean mean_length and the given deviation, cut off outside
///              [0, max_length] and rounded down: 0 is possible
enum class LengthLaw { geometric, fixed, normal };

}  // namespace recmill::reader

namespace recmill {
template <>
struct EnumNames<reader::SyntheticShape> {
  static constexpr std::array names{
      std::pair{reader::SyntheticShape::criteo, std::string_view{"criteo"}},
      std::pair{reader::SyntheticShape::columns, std::string_view{"columns"}}};
};
template <>
struct EnumNames<reader::IdLaw> {
  static constexpr std::array names{std::pair{reader::IdLaw::zipf, std::string_view{"zipf"}},
                                    std::pair{reader::IdLaw::uniform, std::string_view{"uniform"}},
                                    std::pair{reader::IdLaw::power, std::string_view{"power"}}};
};
template <>
struct EnumNames<reader::LengthLaw> {
  static constexpr std::array names{
      std::pair{reader::LengthLaw::geometric, std::string_view{"geometric"}},
      std::pair{reader::LengthLaw::fixed, std::string_view{"fixed"}},
      std::pair{reader::LengthLaw::normal, std::string_view{"normal"}}};
};
}  // namespace recmill

namespace recmill::reader {

/// Skewed non-negative counts: Zipf over 0 ... maximum.
struct SyntheticDenseColumn {
  std::string name;
  int64_t maximum = 1000;
  double zipf = 1.0;
  double missing_share = 0.0;
  double negative_share = 0.0;
};
template <typename Visitor>
void describe(Visitor& v, SyntheticDenseColumn& o) {
  v("name", o.name, "name of the column");
  v("maximum", o.maximum, "largest value; values are counts from 0, small ones most often",
    between(1, 0x1p31 - 1));
  v("zipf", o.zipf, "exponent of Zipf's law over the values", between(0, 20));
  v("missing_share", o.missing_share, "share of cells without a value", from_to_below(0, 1));
  v("negative_share", o.negative_share, "share of cells that hold -1 or -2", from_to_below(0, 1));
}

struct SyntheticIdColumn {
  std::string name;
  int64_t cardinality = 1000;
  IdLaw law = IdLaw::zipf;
  double zipf = 1.05;
  double top_percent = 0.0;
  double top_access_percent = 0.0;
  double drift = 0.0;
  LengthLaw lengths = LengthLaw::geometric;
  double mean_length = 1.0;
  double deviation = 0.0;
  int64_t max_length = 1;
  double empty_share = 0.0;
  int64_t line = 0;
  bool direct = false;
  bool sequence = false;
};
template <typename Visitor>
void describe(Visitor& v, SyntheticIdColumn& o) {
  v("name", o.name, "name of the column");
  v("cardinality", o.cardinality, "different ids, at most 2^32 where id_bits is 32",
    between(1, 0x1p40));
  v("law", o.law,
    "how popular ids are: zipf (by rank), uniform, or power (weights U^(1/3), nearly even)");
  v("zipf", o.zipf, "exponent of Zipf's law over the ranks of the ids", between(0, 20));
  v("top_percent", o.top_percent,
    "with top_access_percent, instead of zipf: this share of the ids ...", from_to_below(0, 100));
  v("top_access_percent", o.top_access_percent,
    "... takes this share of the accesses; 0: zipf decides", from_to_below(0, 100));
  v("drift", o.drift, "ranks by which popularity moves on in a million rows", between(0, 1e12));
  v("lengths", o.lengths,
    "ids of a cell that is not empty: geometric (1 ... max_length), fixed (max_length), or normal "
    "(cut off outside [0, max_length], rounded down)");
  v("mean_length", o.mean_length,
    "mean number of ids in a cell that is not empty; normal: of the law before it is cut off",
    between(1, 1e6));
  v("deviation", o.deviation, "normal: standard deviation before it is cut off", between(0, 1e6));
  v("max_length", o.max_length, "largest number of ids in a cell", between(1, 1e6));
  v("empty_share", o.empty_share, "share of cells without an id", between(0, 1));
  v("line", o.line,
    "columns of one line, a number from 1, have cells of one length in each row; 0: its own");
  v("direct", o.direct, "ids are 0 ... cardinality - 1, in no order of popularity");
  v("sequence", o.sequence,
    "the order of the ids matters: each counts half as much as the one after it");
}

/// The truth behind the labels: logit = intercept + dense terms + id effects + crosses. Variances
/// are those of the three parts over the training rows.
struct PlantedOptions {
  double click_rate = 0.25;
  double dense_variance = 1.1;
  double id_variance = 0.4;
  double cross_variance = 0.5;
  int64_t crosses = 3;
  double learnable_count = 200;
  int64_t columns = 0;
};
template <typename Visitor>
void describe(Visitor& v, PlantedOptions& o) {
  v("click_rate", o.click_rate, "share of clicks",
    Range{.least = 0, .most = 1, .open_least = true, .open_most = true});
  v("dense_variance", o.dense_variance, "variance of the dense terms of the logit",
    between(0, 100));
  v("id_variance", o.id_variance, "variance of the effects of single ids", between(0, 100));
  v("cross_variance", o.cross_variance, "variance of the crosses of pairs of columns",
    between(0, 100));
  v("crosses", o.crosses, "pairs of small id columns whose ids act together");
  v("learnable_count", o.learnable_count,
    "an id has an effect when it is expected this often in the training rows", above(0));
  v("columns", o.columns,
    "id columns, evenly spread, whose single ids have effects; 0: all of them");
}

struct SyntheticOptions {
  int64_t rows = 1900000;
  int64_t eval_rows = 100000;
  int64_t seed = 1;
  SyntheticShape shape = SyntheticShape::criteo;
  double cardinality_scale = 0.05;
  double zipf = 1.05;
  double top_percent = 0.0;
  double top_access_percent = 0.0;
  double drift = 0.0;
  double popularity = 0.0;
  double missing_share = 0.1;
  int64_t id_bits = 32;
  int64_t groups = 0;
  int64_t time_step = 0;
  std::vector<SyntheticDenseColumn> dense;
  std::vector<SyntheticIdColumn> ids;
  PlantedOptions planted;
};
template <typename Visitor>
void describe(Visitor& v, SyntheticOptions& o) {
  v("rows", o.rows, "training rows", between(1, 0x1p40));
  v("eval_rows", o.eval_rows, "held-out rows, which follow the training rows", between(0, 0x1p40));
  v("seed", o.seed, "everything is a function of it");
  v("shape", o.shape, "criteo: 13 dense and 26 id columns like Criteo's; columns: as listed");
  v("cardinality_scale", o.cardinality_scale,
    "criteo: Kaggle columns of over 10,000 ids are scaled by this, to no less than 10,000",
    above_up_to(0, 100));
  v("zipf", o.zipf, "criteo: exponent of Zipf's law over the ranks of the ids", between(0, 20));
  v("top_percent", o.top_percent,
    "criteo: with top_access_percent, instead of zipf: this share of the ids ...",
    from_to_below(0, 100));
  v("top_access_percent", o.top_access_percent,
    "criteo: ... takes this share of the accesses; 0: zipf decides", from_to_below(0, 100));
  v("drift", o.drift, "criteo: ranks by which popularity moves on in a million rows",
    between(0, 1e12));
  v("popularity", o.popularity,
    "probability with which an id is the one at its row's quantile of the column's law, which all "
    "columns have in common (but the first of each cross): popular ids then come together in one "
    "row; 0: ids are independent",
    between(0, 1));
  v("missing_share", o.missing_share,
    "criteo: share of missing cells in the columns that have any in Criteo's data",
    from_to_below(0, 1));
  v("id_bits", o.id_bits, "raw ids are 32-bit or 64-bit numbers");
  v("groups", o.groups, "different values of the group column (users); 0: no such column");
  v("time_step", o.time_step, "seconds from row to row in the time column; 0: no such column",
    between(0, 1e6));
  v("dense", o.dense, "columns: the dense columns");
  v("ids", o.ids, "columns: the id columns");
  v("planted", o.planted, "the planted click model");
}

/// Whether a cross may be planted on the column: one id a cell, 4 to 1,000 different ids.
bool can_be_crossed(const SyntheticIdColumn& column);

/// The options with the columns of their shape filled in. An impossible value is refused, naming
/// its key in `section`.
Result<SyntheticOptions> resolve(SyntheticOptions options, const std::string& section = "");

}  // namespace recmill::reader
