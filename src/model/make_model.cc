// SPDX-License-Identifier: Apache-2.0
#include "model/make_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/dlrm.h"
#include "model/mlp.h"

#ifdef RECMILL_TORCH
#include "model/deep_fm.h"
#include "model/tbsm.h"
#include "model/wide_and_cross.h"
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

}  // namespace

Result<std::unique_ptr<Model>> make_model(const ModelOptions& options, const ModelSpec& spec,
                                          [[maybe_unused]] uint64_t seed) {
  const ModelSpec user = user_part(spec);
  RECMILL_RETURN_IF_ERROR(check_options(options, user));
  RECMILL_CHECK(with_model_tables(user, options).features == spec.features);
  switch (options.kind) {
    case ModelKind::dlrm:
      return make_dlrm(options, spec);
    case ModelKind::mlp:
      return make_mlp(options, spec);
#ifdef RECMILL_TORCH
    case ModelKind::wide_and_deep:
      return make_wide_and_deep(options, spec);
    case ModelKind::deep_fm:
      return make_deep_fm(options, spec, seed);
    case ModelKind::deep_cross:
      return make_deep_cross(options, spec);
    case ModelKind::tbsm:
      return make_tbsm(options, spec);
#endif
    default:
      break;
  }
  return Status::BadRequest(fmt::format(
      "model.kind: this build has no '{}' (it is built without LibTorch)", name_of(options.kind)));
}

#ifndef RECMILL_TORCH
void use_one_torch_thread() {}
#endif

}  // namespace recmill::model
