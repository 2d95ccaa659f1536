// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "run/resolved_run.h"

namespace recmill::train {

/// A digest of what rows mean: which columns feed which table and how their ids become rows, and
/// how many rows tables have. Not of what a row holds, nor of how it is pooled, trained or placed.
/// Where a dictionary numbers ids by their first appearance, also of which data is read and in
/// which order. AccessCounts::model.
std::string row_digest(const ResolvedRun& run);

/// A digest of how training rows are read from files, wherever these are, in whatever order.
std::string data_digest(const DataOptions& options);

}  // namespace recmill::train
