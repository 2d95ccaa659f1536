// SPDX-License-Identifier: Apache-2.0
#include "model/initial_parameters.h"

namespace recmill::model {

Result<Buffer> initial_parameters(const Model& model, uint64_t seed) {
  const auto count = static_cast<size_t>(model.parameter_count());
  auto buffer = Buffer::allocate_huge(count * sizeof(float));
  if (!buffer.ok()) return buffer.status().at("parameters of the dense layers");
  model.initialize(seed, buffer->as<float>());
  return buffer;
}

}  // namespace recmill::model
