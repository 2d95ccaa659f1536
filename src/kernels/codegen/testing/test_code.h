// SPDX-License-Identifier: Apache-2.0
// Kernels compiled for the GPU of the tests (device/gpu/testing/test_gpu.h), each once for all
// tests (kernel_folder.h).
#pragma once

#include <span>
#include <vector>

#include "device/gpu/testing/test_gpu.h"
#include "kernels/codegen/gpu/gpu_code.h"

namespace recmill::kernels::codegen {

/// By NVRTC for a real GPU, by the system's compiler for the emulator.
Result<std::vector<GpuCode>> compile_for_tests(std::span<const GpuSource> sources);

/// The kernels of sources that the test program has in it: `emulated` are those, which run on the
/// emulator, unless the library that the environment names as RECMILL_KERNELS has changed ones
/// (mutate_gpu_samples.py); for a real GPU the sources are compiled, several at a time. Good to the
/// end of the process.
std::vector<KernelCode> test_codes(std::span<const GpuSource> sources,
                                   std::span<void (*const)(const void*)> emulated);

/// The same of one source.
KernelCode test_code(const GpuSource& source, void (*emulated)(const void*));

}  // namespace recmill::kernels::codegen
