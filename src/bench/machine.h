// SPDX-License-Identifier: Apache-2.0
// What a measurement must say of, and ask from, the machine it runs on.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

namespace recmill::bench {

/// Model of the processor and number of cores, e.g. "AMD EPYC family 26 model 2, 2 cores".
std::string machine_name();

/// Share of the machine's cores, 0 to 1, that processes other than this one and `own` used during
/// the next `seconds` (/proc/stat less the processes' own times). Sleeps meanwhile.
double foreign_load(std::span<const pid_t> own, double seconds);

/// Nanoseconds until a store by one core is seen by another: half of a round trip between two
/// threads, wherever the system runs them, at its best of a few tries. Cores that share a cache
/// take some 30 ns; on a virtual machine the answer changes from minute to minute, and with it what
/// threads lose by sharing data. 0 on a machine of one core.
double core_to_core_ns();

}  // namespace recmill::bench
