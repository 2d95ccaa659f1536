// SPDX-License-Identifier: Apache-2.0
// Headers whose text goes into kernels for GPUs.
#pragma once

#include <string_view>

namespace recmill::kernels {

std::string_view gpu_row_copy_arguments_text();
std::string_view cuda_row_copy_text();
std::string_view gpu_record_copy_arguments_text();
std::string_view cuda_record_copy_text();

}  // namespace recmill::kernels
