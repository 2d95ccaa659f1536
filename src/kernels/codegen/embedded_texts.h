// SPDX-License-Identifier: Apache-2.0
// Headers that go with what is compiled at run time, as the program carries them.
#pragma once

#include <string_view>

namespace recmill::kernels::codegen {

/// kernels/codegen/pool_prelude.h.
std::string_view pool_prelude_text();
/// kernels/codegen/recmill_pool_template.h.
std::string_view recmill_pool_template_text();

// Of fused kernels for GPUs, and what they include where they are compiled for the emulator.
std::string_view kernel_types_text();
std::string_view kernel_text();
std::string_view std_for_kernels_text();
std::string_view gpu_pool_arguments_text();
std::string_view cuda_rows_text();
std::string_view cuda_pool_text();
std::string_view cuda_bags_text();
std::string_view cuda_reordered_bags_text();
std::string_view gpu_distinct_arguments_text();
std::string_view cuda_radix_sort_text();
std::string_view cuda_distinct_rows_text();
std::string_view grid_text();
std::string_view thread_state_text();
std::string_view kernel_language_text();

}  // namespace recmill::kernels::codegen
