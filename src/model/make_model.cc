// SPDX-License-Identifier: Apache-2.0
#include "model/make_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/saturating.h"
#include "model/dlrm.h"
#include "model/mlp.h"

#ifdef RECMILL_TORCH
#include "model/torch_library.h"
#endif

namespace recmill::model {
namespace {

/// `spec` without what with_model_tables() added: what check_options() is to be asked about.
ModelSpec user_part(ModelSpec spec) {
  const auto added = [](const FeatureSpec& feature) { return feature.same_ids_as >= 0; };
  const auto first = std::find_if(spec.features.begin(), spec.features.end(), added);
  if (first == spec.features.end()) return spec;
  spec.tables.resize(first->table - spec.features[first->same_ids_as].table);
  spec.features.erase(first, spec.features.end());
  return spec;
}

Status check(const ModelOptions& options, const ModelSpec& spec) {
  const ModelSpec user = user_part(spec);
  RECMILL_RETURN_IF_ERROR(check_options(options, user));
  RECMILL_CHECK(with_model_tables(user, options).features == spec.features);
  return {};
}

#ifdef RECMILL_TORCH
Result<std::unique_ptr<Model>> make_with_tensors(const ModelOptions& options, const ModelSpec& spec,
                                                 uint64_t seed) {
  RECMILL_ASSIGN_OR_RETURN(const TorchLibrary* torch, torch_library());
  return torch->make_model(options, spec, seed);
}
#endif

}  // namespace

bool needs_torch(ModelKind kind) {
  return kind != ModelKind::dlrm && kind != ModelKind::mlp;
}

Result<std::unique_ptr<Model>> make_model(const ModelOptions& options, const ModelSpec& spec,
                                          [[maybe_unused]] uint64_t seed) {
  RECMILL_RETURN_IF_ERROR(check(options, spec));
  if (options.kind == ModelKind::dlrm) return make_dlrm(options, spec);
  if (options.kind == ModelKind::mlp) return make_mlp(options, spec);
#ifdef RECMILL_TORCH
  return make_with_tensors(options, spec, seed);
#else
  return Status::BadRequest(fmt::format(
      "model.kind: this build has no '{}' (it is built without LibTorch)", name_of(options.kind)));
#endif
}

#ifdef RECMILL_TORCH
Result<std::unique_ptr<Model>> make_model_of_gpu(const ModelOptions& options, const ModelSpec& spec,
                                                 uint64_t seed) {
  RECMILL_RETURN_IF_ERROR(check(options, spec));
  return make_with_tensors(options, spec, seed);
}

Result<std::unique_ptr<Float64Model>> make_float64_model(const ModelOptions& options,
                                                         const ModelSpec& spec, uint64_t seed) {
  RECMILL_RETURN_IF_ERROR(check(options, spec));
  RECMILL_ASSIGN_OR_RETURN(const TorchLibrary* torch, torch_library());
  return torch->make_float64_model(options, spec, seed);
}
#endif

int64_t layer_numbers(const ModelOptions& options, int64_t inputs) {
  const auto sum = [](const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}, [](int64_t a, int64_t b) {
      return saturating_sum({a, b});
    });
  };
  const bool steps = options.kind == ModelKind::tbsm;
  const bool crosses = options.kind == ModelKind::deep_cross;
  return saturating_sum(
      {inputs, sum(options.bottom), sum(options.deep), sum(options.over), sum(options.attention),
       saturating_product({steps ? options.sequence_length : 1, sum(options.top)}),
       saturating_product({crosses ? options.cross_layers : 0, inputs})});
}

}  // namespace recmill::model
