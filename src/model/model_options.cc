// SPDX-License-Identifier: Apache-2.0
#include "model/model_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/saturating.h"
#include "batch/feature_layout.h"

namespace recmill::model {
namespace {

using Kinds = std::initializer_list<ModelKind>;

bool has(Kinds kinds, ModelKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// A list of layer sizes: whether the kind uses it, and that its sizes are positive.
Status check_list(const char* key, const std::vector<int64_t>& sizes, ModelKind kind, Kinds users) {
  if (!has(users, kind)) {
    if (sizes.empty()) return {};
    return Status::BadRequest(fmt::format("model.{}: '{}' has no such layers", key, name_of(kind)));
  }
  return {};
}

Status needs_layers(const char* key, const std::vector<int64_t>& sizes, ModelKind kind) {
  if (!sizes.empty()) return {};
  return Status::BadRequest(
      fmt::format("model.{}: '{}' needs at least one layer size", key, name_of(kind)));
}

Status last_is(const char* key, const std::vector<int64_t>& sizes, int64_t expected,
               const char* why) {
  if (sizes.back() == expected) return {};
  return Status::BadRequest(
      fmt::format("model.{}: last size {} must equal {} {}", key, sizes.back(), why, expected));
}

Status to_logit(const char* key, const std::vector<int64_t>& sizes, ModelKind kind) {
  RECMILL_RETURN_IF_ERROR(needs_layers(key, sizes, kind));
  return last_is(key, sizes, 1, "the logit's size");
}

/// Dense values come in exactly where there are layers over them.
Status check_bottom(const ModelOptions& o, const ModelSpec& spec) {
  if (spec.num_dense > 0) return needs_layers("bottom", o.bottom, o.kind);
  if (o.bottom.empty()) return {};
  return Status::BadRequest("model.bottom: the data has no dense columns to put layers over");
}

Status one_dim(const ModelOptions& o, const ModelSpec& spec) {
  for (size_t f = 1; f < spec.features.size(); ++f) {
    if (spec.dim_of(f) == spec.dim_of(0)) continue;
    return Status::BadRequest(fmt::format(
        "model.kind: '{}' needs rows of one dimension: feature '{}' has {}, '{}' has {}",
        name_of(o.kind), spec.features[0].name, spec.dim_of(0), spec.features[f].name,
        spec.dim_of(f)));
  }
  return {};
}

Status all_pooled(const ModelOptions& o, const ModelSpec& spec) {
  const FeatureLayout layout(spec);
  if (layout.sequences().empty()) return {};
  return Status::BadRequest(fmt::format("model.kind: '{}' takes pooled features, and '{}' is not",
                                        name_of(o.kind),
                                        spec.features[layout.sequences()[0].index].name));
}

Status check_bottom_dim(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(check_bottom(o, spec));
  RECMILL_RETURN_IF_ERROR(one_dim(o, spec));
  if (o.bottom.empty()) return {};
  return last_is("bottom", o.bottom, spec.dim_of(0), "the rows' dimension");
}

Status check_dlrm(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(all_pooled(o, spec));
  RECMILL_RETURN_IF_ERROR(check_bottom_dim(o, spec));
  return to_logit("top", o.top, o.kind);
}

Status check_mlp(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(all_pooled(o, spec));
  return to_logit("top", o.top, o.kind);
}

Status check_deep_input(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(all_pooled(o, spec));
  if (o.deep_input == DeepInput::dense && spec.num_dense == 0) {
    return Status::BadRequest("model.deep_input: the data has no dense columns");
  }
  return {};
}

Status check_wide_and_deep(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(check_deep_input(o, spec));
  return needs_layers("deep", o.deep, o.kind);
}

Status check_deep_fm(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(check_deep_input(o, spec));
  RECMILL_RETURN_IF_ERROR(one_dim(o, spec));
  return to_logit("deep", o.deep, o.kind);
}

Status check_deep_cross(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(all_pooled(o, spec));
  RECMILL_RETURN_IF_ERROR(check_bottom(o, spec));
  return to_logit("over", o.over, o.kind);
}

Status check_tbsm(const ModelOptions& o, const ModelSpec& spec) {
  RECMILL_RETURN_IF_ERROR(check_bottom_dim(o, spec));
  RECMILL_RETURN_IF_ERROR(needs_layers("top", o.top, o.kind));
  const FeatureLayout layout(spec);
  for (const auto& history : layout.sequences()) {
    const auto targets = std::ranges::count_if(layout.features(), [&](const auto& feature) {
      return feature.is_pooled() && feature.table == history.table;
    });
    if (targets == 1) continue;
    return Status::BadRequest(fmt::format(
        "model.kind: 'tbsm' needs one pooled feature (the target) on table '{}' of history '{}', "
        "and there are {}",
        spec.tables[history.table].name, spec.features[history.index].name, targets));
  }
  if (layout.sequences().empty())
    return Status::BadRequest("model.kind: 'tbsm' needs an unpooled feature (a history)");
  return to_logit("over", o.over, o.kind);
}

/// Of dlrm's and tbsm's vectors: the pooled features' and that of the bottom layers.
int64_t interaction_width(const ModelOptions& o, const ModelSpec& spec) {
  const bool bottom = !o.bottom.empty();
  const FeatureLayout layout(spec);
  const auto n = std::ssize(layout.features()) - std::ssize(layout.sequences()) + (bottom ? 1 : 0);
  return saturating_sum({n * (n - 1) / 2, bottom ? spec.dim_of(0) : 0});
}

int64_t deep_width(const ModelOptions& o, const ModelSpec& spec) {
  return saturating_sum({o.deep_input != DeepInput::rows ? spec.num_dense : 0,
                         o.deep_input != DeepInput::dense ? FeatureLayout(spec).columns() : 0});
}

std::vector<LayerList> cross_lists(const ModelOptions& o, const ModelSpec& spec) {
  const int64_t width =
      saturating_sum({FeatureLayout(spec).columns(), o.bottom.empty() ? 0 : o.bottom.back()});
  std::vector<LayerList> lists{{"model.bottom", "model.bottom", spec.num_dense, o.bottom},
                               {"model.over", "embedding.dim", width, o.over}};
  for (int64_t layer = 0; layer < o.cross_layers; ++layer)
    lists.push_back({"", "model.cross_rank", width, {o.cross_rank, width}});
  return lists;
}

std::vector<LayerList> tbsm_lists(const ModelOptions& o, const ModelSpec& spec) {
  std::vector<LayerList> lists{
      {"model.bottom", "model.bottom", spec.num_dense, o.bottom},
      {"model.top", "embedding.dim", interaction_width(o, spec), o.top},
      {"model.over", "model.top", saturating_product({2, o.top.back()}), o.over}};
  if (o.attention.empty()) return lists;
  lists.push_back({"model.attention", "model.sequence_length", o.sequence_length, o.attention});
  lists.push_back(
      {"", "model.attention", o.attention.back(), std::vector<int64_t>{o.sequence_length}});
  return lists;
}

/// Refuses layers that no machine holds, so that no size of theirs overflows.
Status check_sizes(const ModelOptions& options, const ModelSpec& spec) {
  int64_t bytes = 0;
  for (const LayerList& list : layer_lists(options, spec)) {
    int64_t inputs = list.inputs;
    for (size_t l = 0; l < list.sizes.size(); ++l) {
      const int64_t outputs = list.sizes[l];
      bytes = saturating_sum({bytes, saturating_product({inputs, outputs, 4})});
      if (bytes > kMostBytes) {
        const bool by_inputs = list.key.empty() || (l == 0 && inputs > outputs);
        return Status::BadRequest(fmt::format(
            "{}: the model's layers take more than 2^56 bytes, with one of {} inputs and {} "
            "outputs",
            by_inputs ? list.inputs_key : fmt::format("{}[{}]", list.key, l), inputs, outputs));
      }
      inputs = outputs;
    }
  }
  return {};
}

Status check_kind(const ModelOptions& o, const ModelSpec& spec) {
  using enum ModelKind;
  switch (o.kind) {
    case dlrm:
      return check_dlrm(o, spec);
    case wide_and_deep:
      return check_wide_and_deep(o, spec);
    case deep_fm:
      return check_deep_fm(o, spec);
    case deep_cross:
      return check_deep_cross(o, spec);
    case tbsm:
      return check_tbsm(o, spec);
    case mlp:
      return check_mlp(o, spec);
  }
  return Status::BadRequest("model.kind: unknown");
}

}  // namespace

std::vector<LayerList> layer_lists(const ModelOptions& o, const ModelSpec& spec) {
  switch (o.kind) {
    case ModelKind::dlrm:
      return {{"model.bottom", "model.bottom", spec.num_dense, o.bottom},
              {"model.top", "embedding.dim", interaction_width(o, spec), o.top}};
    case ModelKind::mlp:
      return {{"model.top", "embedding.dim",
               saturating_sum({spec.num_dense, FeatureLayout(spec).columns()}), o.top}};
    case ModelKind::wide_and_deep:
      return {
          {"model.deep", "embedding.dim", deep_width(o, spec), o.deep},
          {"", "model.deep", saturating_sum({FeatureLayout(spec).columns(), o.deep.back()}), {1}}};
    case ModelKind::deep_fm:
      return {{"model.deep", "embedding.dim", deep_width(o, spec), o.deep}};
    case ModelKind::deep_cross:
      return cross_lists(o, spec);
    case ModelKind::tbsm:
      return tbsm_lists(o, spec);
  }
  return {};
}

Status check_options(const ModelOptions& o, const ModelSpec& spec) {
  using enum ModelKind;
  RECMILL_RETURN_IF_ERROR(check_list("bottom", o.bottom, o.kind, {dlrm, deep_cross, tbsm}));
  RECMILL_RETURN_IF_ERROR(check_list("top", o.top, o.kind, {dlrm, tbsm, mlp}));
  RECMILL_RETURN_IF_ERROR(check_list("deep", o.deep, o.kind, {wide_and_deep, deep_fm}));
  RECMILL_RETURN_IF_ERROR(check_list("over", o.over, o.kind, {deep_cross, tbsm}));
  RECMILL_RETURN_IF_ERROR(check_list("attention", o.attention, o.kind, {tbsm}));
  if (spec.features.empty()) return Status::BadRequest("model.kind: there are no id features");
  if (o.kind != deep_fm && o.dropout != 0.0) {
    return Status::BadRequest(fmt::format("model.dropout: '{}' has none", name_of(o.kind)));
  }
  if (o.kind != deep_fm && o.batch_norm) {
    return Status::BadRequest(fmt::format("model.batch_norm: '{}' has none", name_of(o.kind)));
  }
  RECMILL_RETURN_IF_ERROR(check_kind(o, spec));
  return check_sizes(o, spec);
}

ModelSpec with_model_tables(ModelSpec spec, const ModelOptions& options) {
  if (options.kind != ModelKind::deep_fm || options.first_order != FirstOrder::table) return spec;
  const size_t tables = spec.tables.size();
  const size_t features = spec.features.size();
  for (size_t t = 0; t < tables; ++t) {
    TableSpec table = spec.tables[t];
    table.name += ".first_order";
    table.dim = 1;
    spec.tables.push_back(std::move(table));
  }
  for (size_t f = 0; f < features; ++f) {
    FeatureSpec feature = spec.features[f];
    feature.name += ".first_order";
    feature.table += static_cast<int>(tables);
    feature.same_ids_as = static_cast<int>(f);
    spec.features.push_back(std::move(feature));
  }
  return spec;
}

}  // namespace recmill::model
