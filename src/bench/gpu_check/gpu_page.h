// SPDX-License-Identifier: Apache-2.0
// What `make gpu-check` found, as a page: tests, and times beside those of rivals and limits.
#pragma once

#include <span>
#include <string>

#include "base/json/json_fwd.h"

namespace recmill::bench {

/// `lines`: as benchmarks write them (to_json(BenchLine)), and for each program of tests one of
/// bench "gpu_check" whose value is the tests that passed and whose limit is all of them.
std::string gpu_page(std::span<const Json> lines);

}  // namespace recmill::bench
