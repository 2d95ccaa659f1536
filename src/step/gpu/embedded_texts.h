// SPDX-License-Identifier: Apache-2.0
// Headers whose text goes into kernels for GPUs.
#pragma once

#include <string_view>

namespace recmill::train {

std::string_view host_device_text();
std::string_view dense_formulas_text();
std::string_view gpu_step_arguments_text();
std::string_view cuda_step_text();

}  // namespace recmill::train
