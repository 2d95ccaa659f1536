// SPDX-License-Identifier: Apache-2.0
// Counts how often each row of a run's tables is looked up in an epoch of its training data.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "run/job_setting.h"
#include "schema/access_counts.h"

namespace recmill::train {

struct CountingRequest {
  int64_t rows = 0;   // the first so many of the run's order; 0: all, or hotset.sample of them
  int64_t bytes = 0;  // of the file that the counts are cut to; 0: stats::default_file_bytes()
};

/// Through the run's own reader, down-sampling and preprocessing, each rank its part. Collective
/// over the processes of the world. Equal for any number of ranks and threads. None where rank 0 is
/// not in this process.
Result<std::optional<AccessCounts>> count_accesses(const RunOptions& options,
                                                   const CountingRequest& request,
                                                   const JobSetting& setting);

}  // namespace recmill::train
