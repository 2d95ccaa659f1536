// SPDX-License-Identifier: Apache-2.0
// How many rows a run's samples look up, as far as that is known before its data is read.
#pragma once

#include <cstdint>
#include <vector>

#include "run/resolved_run.h"

namespace recmill::train {

/// Steps of a history, at most.
int64_t longest_history(const RunOptions& options);

/// [features] Lookups of a sample: of a history its longest length, of a bag of synthetic data the
/// mean one as operations leave it, of any other bag one. Rather above than below.
std::vector<double> sample_lookups(const ResolvedRun& run);

/// Whether samples have as many on average, or more. Histories may be shorter; bags may stay empty,
/// lose ids that have no row, or be cut where their lengths differ.
bool lookups_are_certain(const ResolvedRun& run);

/// Prepared batches that wait for training, at most. A cached store hears with them of the steps
/// whose rows it fetches ahead.
int64_t queued_batches(const RunOptions& options);

/// Batches that a rank has at a time, at most, beside those of a window: those that wait, one that
/// is made, and one that is trained or scored.
int64_t batches_in_hand(const RunOptions& options);

}  // namespace recmill::train
