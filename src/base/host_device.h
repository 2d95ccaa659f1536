// SPDX-License-Identifier: Apache-2.0
// Marks a function that both a CPU and a CUDA kernel call.
#pragma once

#ifdef __CUDACC__
#define RECMILL_HOST_DEVICE __host__ __device__
#else
#define RECMILL_HOST_DEVICE
#endif
