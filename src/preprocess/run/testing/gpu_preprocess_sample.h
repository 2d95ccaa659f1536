// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace recmill::preprocess {

/// The kernel of gpu_preprocess_source(), compiled, as the emulator calls it.
void gpu_preprocess_entry(const void* arguments);

}  // namespace recmill::preprocess
