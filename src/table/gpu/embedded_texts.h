// SPDX-License-Identifier: Apache-2.0
// Headers whose text goes into kernels for GPUs.
#pragma once

#include <string_view>

namespace recmill::table {

std::string_view host_device_text();
std::string_view philox_text();
std::string_view bfloat16_text();
std::string_view clamp_text();
std::string_view with_l2_text();
std::string_view rounding_text();
std::string_view gpu_update_arguments_text();
std::string_view cuda_update_text();
std::string_view row_optimizer_options_text();
std::string_view state_name_text();
std::string_view row_step_text();
std::string_view sgd_text();
std::string_view adagrad_text();
std::string_view rowwise_adagrad_text();
std::string_view adam_text();
std::string_view adam_by_row_text();
std::string_view ftrl_text();

}  // namespace recmill::table
