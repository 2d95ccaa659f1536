// SPDX-License-Identifier: Apache-2.0
// The limit of dense layers on this machine, measured.
#pragma once

#include "device/thread_pool.h"
#include "kernels/precision.h"

namespace recmill::kernels::dense_layer {

/// Floating-point operations a second (a multiply-add is two) that all threads of `pool` together
/// reach on independent multiply-adds in registers: the best of ten tries of some five
/// milliseconds, which is what an undisturbed machine can do. float32: of the best instruction set
/// that Highway finds here. bfloat16: of AVX-512's products of pairs; 0 where the machine has none.
double fma_peak(Precision precision, ThreadPool& pool);

}  // namespace recmill::kernels::dense_layer
