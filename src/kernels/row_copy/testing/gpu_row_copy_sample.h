// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace recmill::kernels {

/// The kernel of gpu_row_copy_source("Recmill"), compiled, as the emulator calls it.
void gpu_row_copy_entry(const void* arguments);

}  // namespace recmill::kernels
