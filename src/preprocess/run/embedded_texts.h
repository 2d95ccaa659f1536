// SPDX-License-Identifier: Apache-2.0
// Headers whose text goes into the kernel for GPUs.
#pragma once

#include <string_view>

namespace recmill::preprocess {

std::string_view host_device_text();
std::string_view split_mix_text();
std::string_view formulas_text();
std::string_view gpu_op_text();
std::string_view cuda_ops_text();
std::string_view gpu_chain_arguments_text();
std::string_view cuda_chains_text();

}  // namespace recmill::preprocess
