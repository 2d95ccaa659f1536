// SPDX-License-Identifier: Apache-2.0
#include "model/make_model.h"

#include <fmt/format.h>

namespace recmill::model {

Result<std::unique_ptr<Model>> make_model(const ModelOptions& options, const ModelSpec& /*spec*/,
                                          uint64_t /*seed*/) {
  return Status::BadRequest(
      fmt::format("model.kind: this build has no '{}'", name_of(options.kind)));
}

void use_one_torch_thread() {}

}  // namespace recmill::model
