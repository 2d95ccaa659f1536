// SPDX-License-Identifier: Apache-2.0
#include "model/initialize.h"

#include <cmath>

#include "base/hash.h"
#include "base/random.h"

namespace recmill::model {

void initialize_linear(uint64_t seed, const ParameterSpec& spec, std::span<float> values) {
  RECMILL_CHECK(spec.shape.size() == 1 || spec.shape.size() == 2, spec.name);
  RECMILL_CHECK(static_cast<int64_t>(values.size()) == spec.size(), spec.name);
  const double deviation = spec.shape.size() == 2
                               ? std::sqrt(2.0 / double(spec.shape[0] + spec.shape[1]))
                               : std::sqrt(1.0 / double(spec.shape[0]));
  const Random random(seed, Purpose::initial_layer, hash_bytes(spec.name));
  for (size_t e = 0; e < values.size(); ++e) {
    values[e] = static_cast<float>(deviation * random.normal(e));
  }
}

void initialize_uniform(uint64_t seed, const ParameterSpec& spec, std::span<float> values) {
  RECMILL_CHECK(static_cast<int64_t>(values.size()) == spec.size(), spec.name);
  const float scale = static_cast<float>(1.0 / std::sqrt(double(spec.shape[0])));
  const Random random(seed, Purpose::initial_layer, hash_bytes(spec.name));
  for (size_t e = 0; e < values.size(); ++e) {
    values[e] = (2.0f * random.uniform(e) - 1.0f) * scale;
  }
}

}  // namespace recmill::model
