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

}  // namespace recmill::reader

namespace recmill {
template <>
struct EnumNames<reader::SyntheticShape> {
  static constexpr std::array names{
      std::pair{reader::SyntheticShape::criteo, std::string_view{"criteo"}},
      std::pair{reader::SyntheticShape::columns, std::string_view{"columns"}}};
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
  v("maximum", o.maximum, "largest value; values are counts from 0, small ones most often");
  v("zipf", o.zipf, "exponent of Zipf's law over the values");
  v("missing_share", o.missing_share, "share of cells without a value");
  v("negative_share", o.negative_share, "share of cells that hold -1 or -2");
}

struct SyntheticIdColumn {
  std::string name;
  int64_t cardinality = 1000;
  double zipf = 1.05;
  double top_percent = 0.0;
  double top_access_percent = 0.0;
  double drift = 0.0;
  double mean_length = 1.0;
  int64_t max_length = 1;
  double empty_share = 0.0;
  bool sequence = false;
};
template <typename Visitor>
void describe(Visitor& v, SyntheticIdColumn& o) {
  v("name", o.name, "name of the column");
  v("cardinality", o.cardinality, "different ids");
  v("zipf", o.zipf, "exponent of Zipf's law over the ranks of the ids");
  v("top_percent", o.top_percent,
    "with top_access_percent, instead of zipf: this share of the ids ...");
  v("top_access_percent", o.top_access_percent,
    "... takes this share of the accesses; 0: zipf decides");
  v("drift", o.drift, "ranks by which popularity moves on in a million rows");
  v("mean_length", o.mean_length, "mean number of ids in a cell that is not empty");
  v("max_length", o.max_length, "largest number of ids in a cell");
  v("empty_share", o.empty_share, "share of cells without an id");
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
};
template <typename Visitor>
void describe(Visitor& v, PlantedOptions& o) {
  v("click_rate", o.click_rate, "share of clicks");
  v("dense_variance", o.dense_variance, "variance of the dense terms of the logit");
  v("id_variance", o.id_variance, "variance of the effects of single ids");
  v("cross_variance", o.cross_variance, "variance of the crosses of pairs of columns");
  v("crosses", o.crosses, "pairs of small id columns whose ids act together");
  v("learnable_count", o.learnable_count,
    "an id has an effect when it is expected this often in the training rows");
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
  v("rows", o.rows, "training rows");
  v("eval_rows", o.eval_rows, "held-out rows, which follow the training rows");
  v("seed", o.seed, "everything is a function of it");
  v("shape", o.shape, "criteo: 13 dense and 26 id columns like Criteo's; columns: as listed");
  v("cardinality_scale", o.cardinality_scale,
    "criteo: Kaggle columns of over 10,000 ids are scaled by this, to no less than 10,000");
  v("zipf", o.zipf, "criteo: exponent of Zipf's law over the ranks of the ids");
  v("top_percent", o.top_percent,
    "criteo: with top_access_percent, instead of zipf: this share of the ids ...");
  v("top_access_percent", o.top_access_percent,
    "criteo: ... takes this share of the accesses; 0: zipf decides");
  v("drift", o.drift, "criteo: ranks by which popularity moves on in a million rows");
  v("missing_share", o.missing_share,
    "criteo: share of missing cells in the columns that have any in Criteo's data");
  v("id_bits", o.id_bits, "raw ids are 32-bit or 64-bit numbers");
  v("groups", o.groups, "different values of the group column (users); 0: no such column");
  v("time_step", o.time_step, "seconds from row to row in the time column; 0: no such column");
  v("dense", o.dense, "columns: the dense columns");
  v("ids", o.ids, "columns: the id columns");
  v("planted", o.planted, "the planted click model");
}

/// Whether a cross may be planted on the column: one id a cell, 4 to 1,000 different ids.
bool can_be_crossed(const SyntheticIdColumn& column);

/// The options with the columns of their shape filled in. An impossible value is refused, naming
/// its key.
Result<SyntheticOptions> resolve(SyntheticOptions options);

}  // namespace recmill::reader
