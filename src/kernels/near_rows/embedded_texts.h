// SPDX-License-Identifier: Apache-2.0
// Headers whose text goes into kernels for GPUs.
#pragma once

#include <string_view>

namespace recmill::kernels {

std::string_view gpu_near_rows_arguments_text();
std::string_view cuda_near_rows_text();

}  // namespace recmill::kernels
