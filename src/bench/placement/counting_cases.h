// SPDX-License-Identifier: Apache-2.0
// Counting accesses: `counting_SHAPE`, ids a second beside what the memory gives;
// `counts_file_SHAPE_ZIPF`, bytes of the file of 100 million lookups, and `counts_read_SHAPE_ZIPF`,
// seconds to read it; `SHAPE_full`: the same of a file that is as large as files may be.
#pragma once

#include "bench/bench.h"

namespace recmill::bench {

Status run_counting_cases(const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
