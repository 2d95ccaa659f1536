// SPDX-License-Identifier: Apache-2.0
// How many rows a run's samples look up, as far as that is known before its data is read.
#pragma once

#include <cstdint>
#include <vector>

#include "train/resolved_run.h"

namespace recmill::train {

/// Steps of a history, at most.
int64_t longest_history(const RunOptions& options);

/// [features] Lookups of a sample: of a history its longest length, of a bag of synthetic data the
/// mean one, where a missing id counts as an id, of any other bag one.
std::vector<double> sample_lookups(const ResolvedRun& run);

}  // namespace recmill::train
