// SPDX-License-Identifier: Apache-2.0
// What a compiled operator (pool_op.h) is made of, as the program carries it.
#pragma once

#include <string_view>

namespace recmill::pool_op {

// Headers.
std::string_view status_text();
std::string_view sparse_batch_text();
std::string_view cuda_api_text();
std::string_view embedded_kernel_text();
std::string_view gpu_blocks_text();
std::string_view task_map_text();
std::string_view pool_op_text();

// Sources.
std::string_view embedded_kernel_source_text();
std::string_view task_map_source_text();
std::string_view pool_op_cpu_source_text();
std::string_view pool_op_gpu_source_text();
std::string_view torch_registration_source_text();

}  // namespace recmill::pool_op
