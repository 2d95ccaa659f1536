// SPDX-License-Identifier: Apache-2.0
// First values of dense parameters: functions of (seed, name, element) alone.
#pragma once

#include <cstdint>
#include <span>

#include "model/model.h"

namespace recmill::model {

/// A fully connected layer's weight [m, n]: normal, mean 0, variance 2 / (m + n); its bias [m]:
/// normal, mean 0, variance 1 / m (as the open-source DLRM and BagPipe draw them). Element e is
/// float32(sqrt(variance) * Random(seed, initial_layer, hash_bytes(name)).normal(e)).
/// `values`: the parameter's own [spec.size()] floats.
void initialize_linear(uint64_t seed, const ParameterSpec& spec, std::span<float> values);

/// One row of a table for each element, [rows, 1]: uniform in [-scale, scale), scale = 1 /
/// sqrt(rows).
void initialize_uniform(uint64_t seed, const ParameterSpec& spec, std::span<float> values);

/// The part of the flat vector that `spec` names.
template <typename T>
std::span<T> part_of(std::span<T> flat, const ParameterSpec& spec) {
  return flat.subspan(static_cast<size_t>(spec.offset), static_cast<size_t>(spec.size()));
}

}  // namespace recmill::model
