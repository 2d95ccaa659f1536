// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Refuse tables, before a model's layers over them are looked at, and rows looked up by a batch,
/// of more than 2^56 bytes, which no machine has, by the key that `given`, the options before
/// resolve_run(), has of them. Layers are model::check_options()'s. So no size of a run that is
/// resolved overflows, nor a hundred of them.
Status check_table_sizes(const ResolvedRun& run, const RunOptions& given);
Status check_batch_sizes(const ResolvedRun& run, const RunOptions& given);

}  // namespace recmill::train
