// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/status.h"
#include "device/thread_pool.h"

namespace recmill::kernels::tune {

/// Bytes a second that all threads together read from memory, one after the other, none of it from
/// a cache: the best of several passes. Fails without the memory for it (256 MiB).
Result<double> measure_memory_rate(const Clock& clock, ThreadPool& pool);

}  // namespace recmill::kernels::tune
