// SPDX-License-Identifier: Apache-2.0
// Which model is trained, and the sizes of its layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "schema/options.h"
#include "schema/size_range.h"
#include "schema/table_spec.h"

namespace recmill::model {

enum class ModelKind { dlrm, wide_and_deep, deep_fm, deep_cross, tbsm, mlp };

/// float32, or bfloat16 operands of the dense layers' products over float32 master weights.
enum class LayerPrecision { float32, bfloat16 };

/// DeepFM's first-order weights: tables of dimension 1 in the store, or one dense parameter with an
/// element for each row of every table (BagPipe's comparison; its gradient is as large).
enum class FirstOrder { table, dense };

/// What the deep layers of Wide&Deep and DeepFM see: dense values, looked-up rows, or both.
enum class DeepInput { dense, rows, all };

/// Each list holds the output sizes of fully connected layers, in order; the input size follows
/// from the data and the tables. A list that the kind does not use must be empty.
struct ModelOptions {
  ModelKind kind = ModelKind::dlrm;
  std::vector<int64_t> bottom = {};  // dlrm, deep_cross, tbsm: over the dense values
  std::vector<int64_t> top = {};   // dlrm, mlp: to the logit; tbsm: over the interactions of a step
  std::vector<int64_t> deep = {};  // wide_and_deep; deep_fm: to the logit
  std::vector<int64_t> over = {};  // deep_cross, tbsm: to the logit
  std::vector<int64_t> attention = {};  // tbsm: over the products with the target, may be empty
  int64_t cross_layers = 2;             // deep_cross
  int64_t cross_rank = 8;               // deep_cross
  int64_t sequence_length = 20;         // tbsm: the last so many steps of a history count
  double dropout = 0.0;                 // deep_fm: share of hidden values that training drops
  bool batch_norm = false;              // deep_fm
  FirstOrder first_order = FirstOrder::table;
  DeepInput deep_input = DeepInput::all;
  LayerPrecision precision = LayerPrecision::float32;
};

/// Whether the model is given the rows of lookups (SliceInput::rows), not only what they have.
inline bool reads_rows(const ModelOptions& options) {
  return options.kind == ModelKind::deep_fm && options.first_order == FirstOrder::dense;
}

/// Fully connected layers of a model, one behind the other.
struct LayerList {
  std::string key;         // of their sizes, "model.top"; empty: one layer that has none
  std::string inputs_key;  // of what decides how many inputs the first has
  int64_t inputs = 0;
  std::vector<int64_t> sizes;
};
/// All products of the model over `spec` by trained matrices. For options that check_options() has
/// taken; numbers may saturate.
std::vector<LayerList> layer_lists(const ModelOptions& options, const ModelSpec& spec);

/// Says what is wrong with `options` for the tables, features and dense columns of `spec`, by key:
/// "model.bottom: last size 16 must equal the rows' dimension 48". `spec` is the user's, without
/// the tables that the model adds.
Status check_options(const ModelOptions& options, const ModelSpec& spec);

/// The spec that the store and make_model() are given: `spec`, and behind its tables and features
/// those that the model adds. deep_fm with first_order = table: for each table T one
/// "T.first_order" of dimension 1 (same rows, optimizer and freezing), for each feature F one
/// "F.first_order" that looks up the same ids. Other models add nothing.
ModelSpec with_model_tables(ModelSpec spec, const ModelOptions& options);

template <typename Visitor>
void describe(Visitor& v, ModelOptions& o) {
  v("kind", o.kind, "dlrm, wide_and_deep, deep_fm, deep_cross, tbsm or mlp");
  v("bottom", o.bottom, "dlrm, deep_cross, tbsm: layer sizes over the dense values", size_range());
  v("top", o.top, "dlrm, mlp: layer sizes to the logit; tbsm: over the interactions of a step",
    size_range());
  v("deep", o.deep, "wide_and_deep, deep_fm: layer sizes of the deep part", size_range());
  v("over", o.over, "deep_cross, tbsm: last layer sizes, to the logit", size_range());
  v("attention", o.attention, "tbsm: hidden sizes between a history's products and their weights",
    size_range());
  v("cross_layers", o.cross_layers, "deep_cross: number of cross layers", between(1, 1000));
  v("cross_rank", o.cross_rank, "deep_cross: rank of the cross layers' matrices", size_range());
  v("sequence_length", o.sequence_length, "tbsm: the last so many steps of a history count",
    between(1, 1e6));
  v("dropout", o.dropout, "deep_fm: share of hidden values that training drops",
    from_to_below(0, 1));
  v("batch_norm", o.batch_norm, "deep_fm: normalise hidden values over the global batch");
  v("first_order", o.first_order, "deep_fm: table (in the store) or dense (a dense parameter)");
  v("deep_input", o.deep_input, "wide_and_deep, deep_fm: the deep part sees dense, rows or all");
  v("precision", o.precision, "products of the dense layers: float32 or bfloat16");
}

}  // namespace recmill::model

namespace recmill {

template <>
struct EnumNames<model::ModelKind> {
  static constexpr std::array names{
      std::pair{model::ModelKind::dlrm, std::string_view{"dlrm"}},
      std::pair{model::ModelKind::wide_and_deep, std::string_view{"wide_and_deep"}},
      std::pair{model::ModelKind::deep_fm, std::string_view{"deep_fm"}},
      std::pair{model::ModelKind::deep_cross, std::string_view{"deep_cross"}},
      std::pair{model::ModelKind::tbsm, std::string_view{"tbsm"}},
      std::pair{model::ModelKind::mlp, std::string_view{"mlp"}}};
};
template <>
struct EnumNames<model::LayerPrecision> {
  static constexpr std::array names{
      std::pair{model::LayerPrecision::float32, std::string_view{"float32"}},
      std::pair{model::LayerPrecision::bfloat16, std::string_view{"bfloat16"}}};
};
template <>
struct EnumNames<model::FirstOrder> {
  static constexpr std::array names{std::pair{model::FirstOrder::table, std::string_view{"table"}},
                                    std::pair{model::FirstOrder::dense, std::string_view{"dense"}}};
};
template <>
struct EnumNames<model::DeepInput> {
  static constexpr std::array names{std::pair{model::DeepInput::dense, std::string_view{"dense"}},
                                    std::pair{model::DeepInput::rows, std::string_view{"rows"}},
                                    std::pair{model::DeepInput::all, std::string_view{"all"}}};
};

}  // namespace recmill
