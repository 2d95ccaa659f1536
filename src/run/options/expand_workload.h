// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "run/options/run_options.h"

namespace recmill::train {

/// The options with the lines of [workload] written out: for each feature f0, f1, ... an id column
/// of the synthetic data, a table whose rows are the ids (mapping = direct), and a feature whose
/// missing cells are empty bags. The result has no lines, so that it expands to itself. An
/// impossible value is refused, naming line and key: "workload.lines[2].dims: ...".
Result<RunOptions> expand_workload(RunOptions options);

}  // namespace recmill::train
