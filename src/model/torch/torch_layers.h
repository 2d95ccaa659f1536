// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model/gpu_layers.h"

namespace recmill::model {

/// make_gpu_layers().
Result<std::unique_ptr<GpuLayers>> make_torch_layers(LayersOn device, const Gpu& gpu,
                                                     const Model& model, const ModelSpec& spec);

}  // namespace recmill::model
