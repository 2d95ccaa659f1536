// SPDX-License-Identifier: Apache-2.0
// A click log whose truth is known: what a row holds, its probability of a click, and the label
// drawn from that.
//
//   logit = intercept + sum over dense columns of a_j * (ln(1 + max(x_j, 0)) - mean_j)
//                     + sum over id columns and the ids of a cell of w * effect(id)
//                     + sum over crosses (A, B) of u(id in A) * v(id in B)
//
// A missing x counts as 0. An id has an effect, and a factor, when it is expected at least
// learnable_count times in the training rows; else 0, so that what a model makes of it is noise.
// Weight w of an id: 1 / sqrt(mean_length), and in a sequence halved for each id after it. Effects
// have mean 0 in each column and a variance that falls with the square root of its learnable ids.
// Factors have mean 0 in both columns: given one id alone, the mean of a cross
// is 0, so that a model without crosses, however well fitted, gains nothing from them: its best is
// the logit without the crosses. With popularity > 0, where ids of different columns depend on each
// other, the first column of each cross is drawn alone, so that this still holds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "reader/synthetic/synthetic_columns.h"
#include "schema/column_spec.h"

namespace recmill::reader {

struct LogitParts {
  double dense = 0, ids = 0, crosses = 0;  // without the intercept
};

/// Consecutive rows, column by column. Reused from block to block.
struct SyntheticRows {
  int64_t first = 0, count = 0;
  std::vector<std::vector<float>> dense;  // [dense columns][count]; NaN: missing
  // Of the id columns that decide on clicks; the others have neither offsets nor positions here.
  std::vector<std::vector<int64_t>> offsets;    // [id columns][count + 1], into positions
  std::vector<std::vector<int64_t>> positions;  // [id columns][offsets.back()]
  std::vector<LogitParts> logits;               // [count]
  std::vector<double> probabilities;            // [count], of a click
  std::vector<float> labels;                    // [count], 0 or 1
};

class PlantedModel {
 public:
  /// Options of either shape, resolved here. A function of the options alone.
  static Result<PlantedModel> build(const SyntheticOptions& options,
                                    const std::string& section = "");

  const SyntheticOptions& options() const { return options_; }  // resolved
  const DataSchema& schema() const { return schema_; }
  const std::vector<IdSource>& ids() const { return ids_; }

  /// Whether the ids of a column decide on clicks, so that generate() makes them: by
  /// planted.columns, or because of a cross.
  bool decides(size_t column) const { return decides_[column]; }

  /// Rows [first, first + count), wherever that lies. Any thread.
  void generate(int64_t first, int64_t count, SyntheticRows& rows) const;

  /// User of a row, evenly drawn; with groups > 0 only.
  uint64_t group(int64_t row) const;
  /// Seconds since 1970, time_step a row.
  int64_t time(int64_t row) const { return 1600000000 + row * options_.time_step; }

  /// Effect of an id; 0 when it is too rare.
  double effect(size_t column, int64_t position) const {
    return effects_[column].at(position, ids_[column].column().cardinality);
  }
  int64_t learnable_ids(size_t column) const {
    return static_cast<int64_t>(effects_[column].values.size());
  }
  /// The two id columns of a cross.
  std::vector<std::array<size_t, 2>> crossed_columns() const;

 private:
  /// Values of the learnable ids, positions [-below, values.size() - below) modulo cardinality.
  struct Learnable {
    int64_t below = 0;
    std::vector<double> values;
    double at(int64_t position, int64_t cardinality) const {
      int64_t index = position + below;
      if (index >= cardinality) index -= cardinality;
      return index < static_cast<int64_t>(values.size()) ? values[index] : 0.0;
    }
  };
  struct Cross {
    std::array<size_t, 2> columns;
    std::array<Learnable, 2> factors = {};
  };

  PlantedModel() = default;
  /// `key_of_column`: what decides how popular its ids are, for errors.
  Status make_id_sources(const std::function<std::string(size_t)>& key_of_column);
  void pair_columns();
  void choose_columns();
  void plant_dense();
  void plant_effects();
  void plant_crosses();
  std::vector<LogitParts> sample_logits() const;
  void scale_effects();
  void set_intercept();
  void add_dense(SyntheticRows& rows) const;
  void add_ids(SyntheticRows& rows) const;
  void add_crosses(SyntheticRows& rows) const;
  static double draw_centred(const Random& random, const std::vector<double>& shares,
                             Learnable& column);
  Learnable learnable(size_t column, std::vector<double>& shares) const;

  SyntheticOptions options_;
  DataSchema schema_;
  std::vector<DenseSource> dense_;
  std::vector<IdSource> ids_;
  std::vector<bool> has_effects_, decides_;  // [id columns]
  std::vector<double> coefficients_;         // [dense columns]
  std::vector<Learnable> effects_;           // [id columns]
  std::vector<Cross> crosses_;
  double intercept_ = 0;
};

}  // namespace recmill::reader
